# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=page.cc "-DPARTS=page.css;..." -P embed_page.cmake: page.html
# as a C++ string, each part in the place of its mark {{name}}.
file(READ ${CMAKE_CURRENT_LIST_DIR}/page.html page)
foreach(name ${PARTS})
  file(READ ${CMAKE_CURRENT_LIST_DIR}/${name} text)
  string(REPLACE "{{${name}}}" "${text}" page "${page}")
endforeach()
file(WRITE ${OUTPUT} "#include \"trainer/report/page.h\"\n
namespace onestep {
const char kPage[] = R\"page(${page})page\";
}  // namespace onestep\n")
