# find_package(model REQUIRED PATHS …), then target_link_libraries(program PRIVATE model::model).
if(NOT TARGET model::model)
  add_library(model::model OBJECT IMPORTED)
  set_target_properties(model::model PROPERTIES
    IMPORTED_OBJECTS "${CMAKE_CURRENT_LIST_DIR}/model.o"
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_LIST_DIR}")
endif()
set(model_WEIGHTS "${CMAKE_CURRENT_LIST_DIR}/model.weights.bin")
