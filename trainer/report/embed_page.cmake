# SPDX-License-Identifier: Apache-2.0
# cmake -DNAME=kPage -DOUTPUT=page.cc "-DSCRIPTS=page.js;..." -P embed_page.cmake:
# page.html with its style and these scripts, as a C++ string.
set(here ${CMAKE_CURRENT_LIST_DIR})
file(READ ${here}/page.html page)
file(READ ${here}/page.css style)
set(scripts "")
foreach(name ${SCRIPTS})
  file(READ ${here}/${name} text)
  string(APPEND scripts "<script>\n${text}</script>\n")
endforeach()
string(REPLACE "{{style}}" "${style}" page "${page}")
string(REPLACE "{{scripts}}" "${scripts}" page "${page}")
file(WRITE ${OUTPUT} "#include \"trainer/report/page.h\"\n
namespace onestep {
const char ${NAME}[] = R\"page(${page})page\";
}  // namespace onestep\n")
