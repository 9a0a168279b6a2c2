# Thin: a target is one command, but for `install`. `make run` needs Rust only; `make test` is what CI runs.
NVLAB = cargo run --release --quiet --locked -p nvlab-cli --
RECORDED = traces/pgbench-ext4.blkparse.zst compact align=4KiB qd=32
TRACE = $(RECORDED) copies=40
FTLS = ssd-mlc-2010 mlc-block mlc-bast mlc-fast fusion-fast hybrid-slc-mlc hot-cold
CLEANERS = ssd-tlc ssd-tlc,ftl.clean.kind=fifo ssd-tlc,ftl.clean.kind=cost-benefit ssd-tlc,ftl.clean.kind=d-choices ssd-tlc,ftl.clean.kind=windowed-greedy

PREFIX = $$HOME/.local
SHELLS = bash:share/bash-completion/completions/nvlab zsh:share/zsh/site-functions/_nvlab fish:share/fish/vendor_completions.d/nvlab.fish
define WHAT
A database (PostgreSQL on ext4, recorded) on a TLC drive, with five ways to choose the block to clean.
waf, write amplification, is bytes programmed for each byte written: 1 is the least, and the flash wears by it.

endef
define NEXT

Next: nvlab explain waf; more spare for the same drive: nvlab compare ssd-tlc ssd-tlc,ftl.spare=28% -w 'zipf qd=32';
your own drive: nvlab design new mine.toml (nvlab is target/release/nvlab; make install puts it on the path).
endef
export WHAT NEXT

.PHONY: run install ftls test fuzz test-real browser mutants check-theory check-twin bench bench-durable bench-heap scale lint deny docs site wheel python miri

run: ; @echo "$$WHAT"; $(NVLAB) compare $(CLEANERS) -w '$(TRACE)' --precondition full -m iops,write.mean,write.p99_9,read.p99,waf,erases,tbw,price --html runs/make-run.html && echo "$$NEXT"

install:
	cargo install --quiet --locked --profile dist --path crates/cli --root $(PREFIX)
	$(PREFIX)/bin/nvlab man -q $(PREFIX)/share/man/man1
	@for shell in $(SHELLS); do file=$(PREFIX)/$${shell#*:}; mkdir -p $${file%/*}; $(PREFIX)/bin/nvlab completions $${shell%%:*} >$$file; done

ftls: ; @$(NVLAB) compare $(FTLS) -w '$(RECORDED) copies=3' --precondition full -m iops,write.mean,write.p99,waf,data.erases,log.erases,media.time,tbw,price.flash,memory --html runs/ftls.html

test: ; cargo test --workspace --locked

fuzz: ; NVLAB_FUZZ_COUNT=20000 cargo test -p nvlab-cli --locked --test all fuzz:: -- --nocapture

test-real: ; cargo build --release --quiet --locked -p nvlab-cli && cargo build --release --quiet --locked -p nvlab-nvheap --example todo && tests/real/all.sh $${CARGO_TARGET_DIR:-target}/release/nvlab

browser: site ; cargo build --release --quiet --locked -p nvlab-cli && cd $${CARGO_TARGET_DIR:-target} && python3 $(CURDIR)/tests/browser/pages.py release/nvlab site screenshots

# Changes one place of units and medium at a time and says which changes no test of theirs notices; hours.
mutants: ; @command -v cargo-mutants >/dev/null || cargo install --quiet --locked cargo-mutants; cargo mutants --package nvlab-units --package nvlab-medium

check-theory: ; @$(NVLAB) check-theory

check-twin: ; @cargo build --release --quiet --locked -p nvlab-cli && python3 scripts/twin-against-writing.py $${CARGO_TARGET_DIR:-target}/release/nvlab

bench: ; @$(NVLAB) bench && scripts/instructions.sh

bench-durable: ; @cargo run --release --quiet --locked --manifest-path bench/durable/Cargo.toml --

bench-heap: ; @cargo run --release --quiet --locked --manifest-path bench/heap/Cargo.toml --

# A fleet of 1000 volumes and a sweep of 200 points, with the package from a wheel: rates, memory, what a second core or worker gives.
scale: ; @python=$$(scripts/python-env.sh) && wheel=$$(scripts/wheel.sh) && $$python -m pip install --quiet --no-deps --upgrade --target target/scale "$$wheel" && PYTHONPATH=target/scale $$python scripts/scale.py

# A wheel of the Python package, in target/wheels; `python` installs the package from here and from the wheel, and tries both.
wheel: ; @scripts/wheel.sh

python: ; @scripts/python-check.sh

lint: ; cargo fmt --all --check && cargo clippy --workspace --all-targets --locked -- -D warnings

deny: ; @scripts/deny.sh

# Small heaps under the interpreter that checks Rust's rules for memory and threads; a nightly compiler is installed if there is none.
miri: ; @scripts/miri.sh

# The documentation: pages, notebooks (executed), references. In target/site.
site: ; NVLAB_PYTHON=$$(scripts/python-env.sh) cargo test --workspace --quiet --locked --test python -- site --nocapture

docs: ; RUSTDOCFLAGS="-D warnings" cargo doc --workspace --exclude nvlab-cli --exclude nvlab-tests --no-deps --locked
