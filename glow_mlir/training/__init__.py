"""Training: losses, optimizers and whole steps as graphs of `glow_high`."""

from __future__ import annotations

from glow_mlir.training.initializers import Filled as Filled
from glow_mlir.training.initializers import He as He
from glow_mlir.training.initializers import Initializer as Initializer
from glow_mlir.training.initializers import Normal as Normal
from glow_mlir.training.initializers import Orthogonal as Orthogonal
from glow_mlir.training.initializers import Uniform as Uniform
from glow_mlir.training.initializers import Xavier as Xavier
from glow_mlir.training.losses import BinaryCrossEntropy as BinaryCrossEntropy
from glow_mlir.training.losses import BinaryCrossEntropyWithLogits as BinaryCrossEntropyWithLogits
from glow_mlir.training.losses import CrossEntropy as CrossEntropy
from glow_mlir.training.losses import HuberLoss as HuberLoss
from glow_mlir.training.losses import KullbackLeiblerDivergence as KullbackLeiblerDivergence
from glow_mlir.training.losses import Loss as Loss
from glow_mlir.training.losses import MeanAbsoluteError as MeanAbsoluteError
from glow_mlir.training.losses import MeanSquaredError as MeanSquaredError
from glow_mlir.training.losses import OutputLoss as OutputLoss
from glow_mlir.training.optimizers import LAMB as LAMB
from glow_mlir.training.optimizers import SGD as SGD
from glow_mlir.training.optimizers import Adagrad as Adagrad
from glow_mlir.training.optimizers import Adam as Adam
from glow_mlir.training.optimizers import AdamW as AdamW
from glow_mlir.training.optimizers import Optimizer as Optimizer
from glow_mlir.training.optimizers import RMSprop as RMSprop
from glow_mlir.training.schedules import Constant as Constant
from glow_mlir.training.schedules import Cosine as Cosine
from glow_mlir.training.schedules import Exponential as Exponential
from glow_mlir.training.schedules import InverseRoot as InverseRoot
from glow_mlir.training.schedules import Linear as Linear
from glow_mlir.training.schedules import Polynomial as Polynomial
from glow_mlir.training.schedules import Schedule as Schedule
from glow_mlir.training.schedules import StepDecay as StepDecay
from glow_mlir.training.schedules import WarmUp as WarmUp
