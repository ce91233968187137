// Two decision trees whose leaves name targets, and tables that data and constants lead into.
glow_high.placeholder @x : tensor<5x3xf32> {input}
glow_high.constant @nodes : tensor<3x4xi32> {value = dense<[[0, 1, -1, 1056964608], [2, -2, -3, 0], [1, -4, -5, -1090519040]]> : tensor<3x4xi32>}
glow_high.constant @roots : tensor<2xi32> {value = dense<[0, 2]> : tensor<2xi32>}
glow_high.constant @targets : tensor<5x1xi32> {value = dense<[[0], [1], [0], [1], [1]]> : tensor<5x1xi32>}
glow_high.constant @leaves : tensor<5x1xf32>
glow_high.constant @table : tensor<6x4xf32>
glow_high.constant @places : tensor<3xi64> {value = dense<[5, -6, 2]> : tensor<3xi64>}
glow_high.constant @codes : tensor<256xi8>
glow_high.placeholder @b : tensor<2x3xui8> {input}
glow_high.placeholder @y : tensor<5x2xf32> {output}
glow_high.placeholder @z : tensor<3x4xf32> {output}
glow_high.placeholder @c : tensor<2x3xi8> {output}
glow_high.func @main(@x, @b, @y, @z, @c) {
  %x = glow_high.get @x : tensor<5x3xf32>
  %nodes = glow_high.get @nodes : tensor<3x4xi32>
  %roots = glow_high.get @roots : tensor<2xi32>
  %leaves = glow_high.get @leaves : tensor<5x1xf32>
  %targets = glow_high.get @targets : tensor<5x1xi32>
  %y = glow_high.tree_ensemble %x, %nodes, none, %roots, %leaves, %targets {size = 2} : tensor<5x2xf32>
  glow_high.save %y, @y
  %table = glow_high.get @table : tensor<6x4xf32>
  %places = glow_high.get @places : tensor<3xi64>
  %z = glow_high.gather %table, %places : tensor<3x4xf32>
  glow_high.save %z, @z
  %b = glow_high.get @b : tensor<2x3xui8>
  %codes = glow_high.get @codes : tensor<256xi8>
  %c = glow_high.lookup %b, %codes : tensor<2x3xi8>
  glow_high.save %c, @c
}
