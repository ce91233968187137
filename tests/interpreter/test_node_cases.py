"""ONNX's own node tests of the elementwise, spatial, linear, normalizing, reducing and recurrent operators."""

from __future__ import annotations

import pytest
from node_cases import cases_of, check_case

ELEMENTWISE = """
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast
    CastLike Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf
    IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu
    Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu Where Xor
"""
SPATIAL = """
    AveragePool Col2Im Conv ConvTranspose DeformConv GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample LpPool
    MaxPool MaxUnpool RoiAlign
"""
SIGNALS = "LinearAttention MelWeightMatrix STFT TfIdfVectorizer"
LINEAR = "Det Einsum Gemm MatMul"
NORMALIZATION = """
    BatchNormalization Dropout GroupNormalization Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax
    LpNormalization MeanVarianceNormalization RMSNormalization Softmax
"""
REDUCTIONS = """
    ArgMax ArgMin CumProd CumSum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin
    ReduceProd ReduceSum ReduceSumSquare TopK
"""
RECURRENT = "GRU LSTM RNN"
OPERATORS = " ".join((ELEMENTWISE, SPATIAL, SIGNALS, LINEAR, NORMALIZATION, REDUCTIONS, RECURRENT)).split()

CONSTANT_OPERANDS = {
    **{name: (1,) for name in REDUCTIONS.split() if name not in ("ArgMax", "ArgMin")},
    "Col2Im": (1, 2),
    "Dropout": (1, 2),
    "MaxUnpool": (2,),
    "MelWeightMatrix": tuple(range(5)),
    "STFT": (1, 3),
}
"""Operands that fix shapes, or whether a network trains: the importer needs their values."""

LOW_PRECISION = "numbers of 4 and floats of 8 bits have no element type here yet"
UNSUPPORTED = {
    "test_cast*FLOAT4E2M1*": LOW_PRECISION,
    "test_cast*FLOAT8E*": LOW_PRECISION,
    "test_cast*INT2*": LOW_PRECISION,
    "test_cast*INT4*": LOW_PRECISION,
    "test_equal_string*": "strings are no numbers",
    "test_training_dropout": "what it drops is random",
    "test_training_dropout_default*": "what it drops is random",
    "test_training_dropout_mask": "what it drops is random",
}
"""Cases that the importer refuses, and why."""


@pytest.mark.parametrize("name", cases_of(OPERATORS))
def test_node_case(name: str) -> None:
    check_case(name, UNSUPPORTED, CONSTANT_OPERANDS)
