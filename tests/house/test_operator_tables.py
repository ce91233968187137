"""docs/operators.md is what its generator writes."""

from __future__ import annotations

from checkout import run_python


def test_operator_tables_are_fresh() -> None:
    run_python(
        "import runpy, sys\n"
        "sys.argv = ['docs/generate_operators.py', '--check']\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
