"""Write what PyTorch makes of a parameter, for `test_optimizers.py`; needs torch, and `tests/support` on the path."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

from optimizer_cases import CASES, START, STEPS, gradient


def main() -> None:
    torch = import_module("torch")
    found: dict[str, list[list[float]]] = {}
    for name, (_, kind, parameters) in CASES.items():
        parameter = torch.nn.Parameter(torch.from_numpy(START.copy()))
        optimizer = getattr(torch.optim, kind)([parameter], **parameters)
        for step in range(STEPS):
            parameter.grad = torch.from_numpy(gradient(step))
            optimizer.step()
        found[name] = parameter.detach().numpy().tolist()
    text = json.dumps({"torch": torch.__version__, "parameters": found}, indent=1)
    (Path(__file__).parent / "trajectories.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
