# What Zephyr's package for CMake does with modules and an application, as far as bundles ask for it, on this machine.
# CONFIGURATION is the file of all options with their values, which Zephyr's Kconfig would have written.
project(Zephyr-Kernel LANGUAGES C)

add_library(zephyr_interface INTERFACE)
target_include_directories(zephyr_interface INTERFACE "${CMAKE_CURRENT_LIST_DIR}/include")
add_library(app OBJECT)
target_link_libraries(app PUBLIC zephyr_interface)

function(zephyr_include_directories)
  target_include_directories(zephyr_interface INTERFACE ${ARGN})
endfunction()

function(zephyr_library_import name path)
  add_library(${name} STATIC IMPORTED GLOBAL)
  set_property(TARGET ${name} PROPERTY IMPORTED_LOCATION "${path}")
  set_property(GLOBAL APPEND PROPERTY ZEPHYR_LIBS ${name})
endfunction()

file(STRINGS "${CONFIGURATION}" options REGEX "^CONFIG_")
foreach(option ${options})
  string(REGEX MATCH "^([^=]+)=(.*)$" option "${option}")
  set(${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()

foreach(module ${EXTRA_ZEPHYR_MODULES})
  file(STRINGS "${module}/zephyr/module.yml" entry REGEX "^ +cmake: ")
  string(REGEX REPLACE "^ +cmake: +" "" folder "${entry}")
  get_filename_component(name "${module}" NAME)
  add_subdirectory("${module}/${folder}" "${CMAKE_BINARY_DIR}/modules/${name}")
endforeach()

get_property(libraries GLOBAL PROPERTY ZEPHYR_LIBS)
add_executable(zephyr_final $<TARGET_OBJECTS:app>)
target_link_libraries(zephyr_final PRIVATE -Wl,--whole-archive ${libraries} -Wl,--no-whole-archive)
set_target_properties(zephyr_final PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME zephyr)
