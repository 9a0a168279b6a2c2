# Thin: each target is one line. `make run` needs Rust only; `make test` is what CI runs.
NVLAB = cargo run --release --quiet --locked -p nvlab-cli --
TRACE = traces/pgbench-ext4.blkparse.zst compact align=4KiB copies=40 qd=32
CLEANERS = ssd-tlc ssd-tlc,ftl.clean.kind=fifo ssd-tlc,ftl.clean.kind=cost-benefit ssd-tlc,ftl.clean.kind=d-choices ssd-tlc,ftl.clean.kind=windowed-greedy

.PHONY: run test check-theory bench lint docs

run: ; @$(NVLAB) compare $(CLEANERS) -w '$(TRACE)' --precondition full -m iops,write.mean,write.p99_9,read.p99,waf,erases,tbw,price --html runs/make-run.html

test: ; cargo test --workspace --locked

check-theory: ; @$(NVLAB) check-theory

bench: ; @$(NVLAB) bench && scripts/instructions.sh

lint: ; cargo fmt --all --check && cargo clippy --workspace --all-targets --locked -- -D warnings

docs: ; RUSTDOCFLAGS="-D warnings" cargo doc --workspace --exclude nvlab-cli --exclude nvlab-tests --no-deps --locked
