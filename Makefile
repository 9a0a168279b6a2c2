# Thin: each target is one line. `make run` needs Rust only; `make test` is what CI runs.
NVLAB = cargo run --release --quiet --locked -p nvlab-cli --
RECORDED = traces/pgbench-ext4.blkparse.zst compact align=4KiB qd=32
TRACE = $(RECORDED) copies=40
FTLS = ssd-mlc-2010 mlc-block mlc-bast mlc-fast fusion-fast hybrid-slc-mlc hot-cold
CLEANERS = ssd-tlc ssd-tlc,ftl.clean.kind=fifo ssd-tlc,ftl.clean.kind=cost-benefit ssd-tlc,ftl.clean.kind=d-choices ssd-tlc,ftl.clean.kind=windowed-greedy

.PHONY: run ftls test fuzz test-real check-theory bench bench-durable bench-heap lint deny docs

run: ; @$(NVLAB) compare $(CLEANERS) -w '$(TRACE)' --precondition full -m iops,write.mean,write.p99_9,read.p99,waf,erases,tbw,price --html runs/make-run.html

ftls: ; @$(NVLAB) compare $(FTLS) -w '$(RECORDED) copies=3' --precondition full -m iops,write.mean,write.p99,waf,data.erases,log.erases,media.time,tbw,price.flash,memory --html runs/ftls.html

test: ; cargo test --workspace --locked

fuzz: ; NVLAB_FUZZ_COUNT=20000 cargo test -p nvlab-cli --locked --test fuzz -- --nocapture

test-real: ; cargo build --release --quiet --locked -p nvlab-cli && cargo build --release --quiet --locked -p nvlab-nvheap --example todo && tests/real/all.sh $${CARGO_TARGET_DIR:-target}/release/nvlab

check-theory: ; @$(NVLAB) check-theory

bench: ; @$(NVLAB) bench && scripts/instructions.sh

bench-durable: ; @cargo run --release --quiet --locked --manifest-path bench/durable/Cargo.toml --

bench-heap: ; @cargo run --release --quiet --locked --manifest-path bench/heap/Cargo.toml --

lint: ; cargo fmt --all --check && cargo clippy --workspace --all-targets --locked -- -D warnings

deny: ; @scripts/deny.sh

docs: ; RUSTDOCFLAGS="-D warnings" cargo doc --workspace --exclude nvlab-cli --exclude nvlab-tests --no-deps --locked
