# What CI runs.
check:
    scripts/test
    git diff --exit-code

# Only the tests whose names contain NAME.
test NAME:
    scripts/test {{NAME}}

fmt:
    cargo fmt
