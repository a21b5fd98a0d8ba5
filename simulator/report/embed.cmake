# cmake -D INPUT=page.css -D OUTPUT=page_css.cc -D NAME=page_css -P embed.cmake
# A file's bytes as a function of asset_text.h.
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUTPUT}" "#include \"report/asset_text.h\"
namespace leeway::sim::asset {
std::string_view ${NAME}() {
  static constexpr unsigned char bytes[] = {
${bytes}};
  return {reinterpret_cast<const char*>(bytes), sizeof(bytes)};
}
}
")
