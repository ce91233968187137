"""docs/abilities.md is what its generator writes."""

from __future__ import annotations

from checkout import run_python


def test_ability_table_is_fresh() -> None:
    run_python(
        "import runpy, sys\n"
        "sys.argv = ['docs/generate_abilities.py', '--check']\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
