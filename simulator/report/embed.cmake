# cmake -D INPUT=page.css -D OUTPUT=page_css.cc -D NAME=page_css -P embed.cmake
# A file's bytes as a function of asset_text.h.
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUTPUT}" "#include \"report/asset_text.h\"
namespace leeway::sim::asset {
namespace {
constexpr unsigned char kBytes[] = {
${bytes}};
}
std::string_view ${NAME}() { return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)}; }
}
")
