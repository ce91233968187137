// What JAX writes of Shardy's dialect is kept as it is.

// RUN: GLOW_UNCHANGED

sdy.mesh @mesh = <["x"=2, "y"=4]>

func.func @main(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y", ?}]>}) -> tensor<4x4xf32> {
  %0, %1 = stablehlo.custom_call @lapack_spotrf_ffi(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], []) {i=4, j=4, k=4, l=4}, custom>} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)
  func.return %0 : tensor<4x4xf32>
}
