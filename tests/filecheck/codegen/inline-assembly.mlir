// RUN: glow-opt %s -t llvm | filecheck %s

// CHECK-LABEL: define i32 @assembly(i32 %v0)
llvm.func @assembly(%x: i32) -> i32 {
  // CHECK: call void asm sideeffect "nop", "~{memory}"()
  llvm.inline_asm has_side_effects "nop", "~{memory}" : () -> ()
  // CHECK-NEXT: call void asm sideeffect alignstack inteldialect "add $0, 1 \22x\22\0A", "r"(i32 %v0)
  llvm.inline_asm has_side_effects is_align_stack asm_dialect = intel "add $0, 1 \"x\"\n", "r" %x : (i32) -> ()
  // CHECK-NEXT: %[[Y:.*]] = tail call i32 asm "mov $1, $0", "=r,r"(i32 %v0)
  %y = llvm.inline_asm asm_dialect = att tail_call_kind = <tail> "mov $1, $0", "=r,r" %x : (i32) -> i32
  // CHECK-NEXT: ret i32 %[[Y]]
  llvm.return %y : i32
}
