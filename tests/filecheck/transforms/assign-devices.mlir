// A module gets the devices of a text, each with the target that it has here; what it says itself stands.

// RUN: glow-opt %s -p 'assign-devices{devices="cpu,target=avx2,threads=2,memory_bytes=4096,interpreter,interpreter,own_memory=1"}' | filecheck %s
// RUN: glow-opt %s -p 'assign-devices{devices=interpreter},assign-devices{devices=interpreter},assign-devices' | filecheck %s --check-prefix=TWICE
// RUN: not glow-opt %s -p 'assign-devices{devices=interpreter},assign-devices{devices=cpu}' 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: not glow-opt %s -p assign-devices 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not glow-opt %s -p 'assign-devices{devices="cpu:1,cpu:1"}' 2>&1 | filecheck %s --check-prefix=LISTED
// RUN: not glow-opt %s -p 'assign-devices{devices="cpu:x"}' 2>&1 | filecheck %s --check-prefix=NAME
// RUN: not glow-opt %s -p 'assign-devices{devices="abacus"}' 2>&1 | filecheck %s --check-prefix=BACKEND
// RUN: not glow-opt %s -p 'assign-devices{devices="cpu,memory_bytes=much"}' 2>&1 | filecheck %s --check-prefix=NUMBER
// RUN: not glow-opt %s -p 'assign-devices{devices="cpu,own_memory=2"}' 2>&1 | filecheck %s --check-prefix=OWN
// RUN: not glow-opt %s -p 'assign-devices{devices="heterogeneous"}' 2>&1 | filecheck %s --check-prefix=SEVERAL
// RUN: glow-opt %s -p 'assign-devices{devices="cpu,target=avx2,cpu,target=avx2,accuracy=default" fields="accuracy=strict,threads=2"}' | filecheck %s --check-prefix=FIELDS
// RUN: not glow-opt %s -p 'assign-devices{devices="interpreter"},assign-devices{fields="accuracy=strict"}' 2>&1 | filecheck %s --check-prefix=OTHERWISE

// OWN: own_memory=2 of the device cpu:0 is neither 0 nor 1
// SEVERAL: 'heterogeneous' is several devices, and none of them
// FIELDS: <"cpu:0", #glow.target<{{.*}}threads = 2, accuracy = "strict">>, #glow.device<"cpu:1", #glow.target<{{.*}}threads = 2>>]
// OTHERWISE: the module says otherwise of interpreter:0 than 'accuracy=strict'

// CHECK: glow.devices = [#glow.device<"cpu:0", #glow.target<backend = "cpu", {{.*}}threads = 2>, memory_bytes = 4096>, #glow.device<"interpreter:0", {{.*}}>, #glow.device<"interpreter:1", {{.*}}, own_memory>]
// TWICE: glow.devices = [#glow.device<"interpreter:0", #glow.target<backend = "interpreter">>]
// OTHER: the module has other devices than 'cpu' (hint: it has interpreter:0)
// NONE: the module has no devices to run on
// LISTED: the device cpu:1 is listed twice
// NAME: 'cpu:x' is no device
// BACKEND: no backend 'abacus'
// NUMBER: memory_bytes=much of the device cpu:0 is no number
glow_high.func @main() {
}
