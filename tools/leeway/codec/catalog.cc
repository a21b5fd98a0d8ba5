#include "codec/catalog.h"

#include <array>

namespace leeway::tools::codecs {

std::span<const CatalogEntry> catalog() {
  static constexpr std::array kEntries = {
      CatalogEntry{"fp32", "exact"},
      CatalogEntry{"fp16", "up to 65,504, finer steps than bf16"},
      CatalogEntry{"bf16", "parameters: the range of float32"},
      CatalogEntry{"fp8_e4m3_block", "gradients at 8 bits; outliers stay local"},
      CatalogEntry{"fp8_e5m2_block", "wider range within a block"},
      CatalogEntry{"fp8_e4m3", "one scale a packet"},
      CatalogEntry{"fp8_e5m2", "one scale a packet, wide range"},
      CatalogEntry{"mxfp8_e4m3", "OCP MX, for hardware that reads it"},
      CatalogEntry{"mxfp8_e5m2", "OCP MX, wide range"},
      CatalogEntry{"int8", "evenly spread values"},
      CatalogEntry{"int8:clip", "int8 that gives up outliers (ACIQ)"},
      CatalogEntry{"mxfp6_e2m3", "OCP MX, three quarters of FP8's bytes"},
      CatalogEntry{"mxfp6_e3m2", "OCP MX, wide range"},
      CatalogEntry{"nvfp4", "gradients: least error below 5 bits"},
      CatalogEntry{"nvfp4_te", "nvfp4 with TransformerEngine's scales"},
      CatalogEntry{"mxfp4", "OCP MX at 4 bits"},
      CatalogEntry{"mxfp4:rotate", "mxfp4 where a few elements dominate"},
      CatalogEntry{"luq:draws=2", "luq, two draws averaged"},
      CatalogEntry{"luq", "wide spreads at 4 bits; unbiased"},
      CatalogEntry{"sparse:2/4", "half of the elements, unbiased"},
      CatalogEntry{"sparse:1/4", "a quarter of them"},
      CatalogEntry{"sparse:16/256", "prunes to 94 % zeros"},
  };
  return kEntries;
}

std::span<const SettingEntry> setting_catalog() {
  static constexpr std::array kSettings = {
      SettingEntry{"nearest", "most", "least error of one copy; biased in sums"},
      SettingEntry{"stochastic", "most", "unbiased: errors of many ranks average out"},
      SettingEntry{"floor even ceil", "mx*", "how a block's scale is chosen; nearest only"},
      SettingEntry{"rotate", "all", "randomised Hadamard transform of 256 elements"},
      SettingEntry{"clip", "int8", "clip at Laplace's optimum (ACIQ); biased"},
      SettingEntry{"draws=N", "luq", "1 .. 4 draws sent and averaged, 4 bits each"},
      SettingEntry{"KEPT/GROUP", "sparse", "elements sent of each 2, 4, 8, 16, 32 or 256"},
      SettingEntry{"bound=X", "packet-scaled", "|x| <= X is known: normalised networks"},
  };
  return kSettings;
}

}  // namespace leeway::tools::codecs
