"""Importers of the operations of StableHLO and CHLO, one file per family."""
