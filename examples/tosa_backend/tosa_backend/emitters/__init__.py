"""How TOSA executes operators, a module for each family; `rules.py` names them."""
