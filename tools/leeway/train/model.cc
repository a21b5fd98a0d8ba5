#include "train/model.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <cmath>
#include <random>
#include <vector>

#include "train/flat_parameters.h"

namespace leeway::tools::train {
namespace {

constexpr double kLayerNormEpsilon = 1e-5;
constexpr double kHeadStd =
    0.02;  // logits start near zero, so that the first loss is ln(vocabulary)
// Standard deviation of token embeddings. With GPT-2's 0.02 the first attention blocks would
// outweigh the embeddings. A run of some hundred steps would spend a third of its steps on learning
// larger embeddings.
constexpr double kTokenStd = 0.5;

// ALiBi (arXiv 2108.12409): in the first head, attention scores fall by this much for each
// character of distance; in each further head, by half as much as in the previous one. Without this
// bias, a language model first has to learn to look at near characters. Its loss stays on a plateau
// meanwhile, and if lost packets prolong the plateau, that costs much. With the bias, position
// embeddings gain nothing.
constexpr double kSteepestSlope = 3.0;
constexpr double kSlopeRatio = 0.5;

// A layer's weight and bias, as indices into FlatParameters.
struct Affine {
  std::size_t weight = 0;
  std::size_t bias = 0;
};
struct Block {
  Affine attention_norm, query_key_value, attention_out;
  Affine mlp_norm, mlp_in, mlp_out;
};

// Normal numbers by Box-Muller over mt19937_64. The C++ standard defines this generator exactly,
// but not its distributions, and initial values must not depend on the library.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : engine_(seed) {}
  void fill(std::span<float> values, double std) {
    for (float& value : values) value = static_cast<float>(std * draw());
  }

 private:
  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1.0p-53; }
  double draw() {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(2.0 * M_PI * uniform());
  }
  std::mt19937_64 engine_;
};

// Returns the bias for attention scores: [head, query, key]. It is minus infinity for keys after
// the query.
at::Tensor distance_bias(const GptShape& shape) {
  const at::Tensor position = at::arange(shape.context, at::kFloat);
  const at::Tensor distance = position.unsqueeze(1) - position.unsqueeze(0);
  std::vector<at::Tensor> heads;
  double slope = kSteepestSlope;
  for (int head = 0; head < shape.heads; ++head, slope *= kSlopeRatio) {
    heads.push_back((-slope * distance).masked_fill(distance < 0, -INFINITY));
  }
  return at::stack(heads);
}

}  // namespace

struct Gpt::Impl {
  explicit Impl(const GptShape& shape_in) : shape(shape_in) {
    token_embedding = flat.add({shape.vocabulary, shape.width});
    for (int layer = 0; layer < shape.layers; ++layer) blocks.push_back(add_block());
    final_norm = add_norm();
    head = add_linear(shape.width, shape.vocabulary);
    flat.allocate();
    score_bias = distance_bias(shape);
  }

  Affine add_norm() { return {flat.add({shape.width}), flat.add({shape.width})}; }
  Affine add_linear(int in, int out) { return {flat.add({out, in}), flat.add({out})}; }
  Block add_block() {
    const int width = shape.width;
    Block block;
    block.attention_norm = add_norm();
    block.query_key_value = add_linear(width, 3 * width);
    block.attention_out = add_linear(width, width);
    block.mlp_norm = add_norm();
    block.mlp_in = add_linear(width, 4 * width);
    block.mlp_out = add_linear(4 * width, width);
    return block;
  }

  void initialize(std::uint64_t seed) {
    Normal normal(seed);
    const auto draw = [&](std::size_t index, double std) {
      const at::Tensor& tensor = flat.view(index);
      normal.fill({tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())}, std);
    };
    // Inner layers use fan-in scaling, which trains small widths faster than GPT-2's constant.
    // Layers that write into the residual stream are scaled down, so that its variance does not
    // grow with depth.
    const double inner = 1.0 / std::sqrt(shape.width);
    const double residual = inner / std::sqrt(2.0 * shape.layers);
    draw(token_embedding, kTokenStd);
    for (const Block& block : blocks) {
      draw(block.query_key_value.weight, inner);
      draw(block.attention_out.weight, residual);
      draw(block.mlp_in.weight, inner);
      draw(block.mlp_out.weight, residual / 2.0);  // fan-in is four times the width
      set_one(block.attention_norm);
      set_one(block.mlp_norm);
    }
    set_one(final_norm);
    draw(head.weight, kHeadStd);
  }
  void set_one(const Affine& norm) {
    at::NoGradGuard no_grad;
    at::Tensor weight = flat.view(norm.weight);
    weight.fill_(1.0);
  }

  at::Tensor normalize(const at::Tensor& x, const Affine& norm) const {
    return at::layer_norm(x, {shape.width}, flat.view(norm.weight), flat.view(norm.bias),
                          kLayerNormEpsilon);
  }
  at::Tensor linear(const at::Tensor& x, const Affine& layer) const {
    return at::linear(x, flat.view(layer.weight), flat.view(layer.bias));
  }

  at::Tensor attention(const at::Tensor& x, const Block& block) const {
    const std::int64_t batch = x.size(0), time = x.size(1), head_width = shape.width / shape.heads;
    const at::Tensor qkv = linear(x, block.query_key_value)
                               .view({batch, time, 3, shape.heads, head_width})
                               .permute({2, 0, 3, 1, 4});
    const at::Tensor query = qkv.select(0, 0) * (1.0 / std::sqrt(static_cast<double>(head_width)));
    const at::Tensor scores = at::matmul(query, qkv.select(0, 1).transpose(-2, -1)) + score_bias;
    const at::Tensor mixed = at::matmul(at::softmax(scores, -1), qkv.select(0, 2));
    return linear(mixed.transpose(1, 2).reshape({batch, time, shape.width}), block.attention_out);
  }
  // With ReLU a step takes a quarter less time than with GELU; the model gets 3 % worse at this
  // size.
  at::Tensor mlp(const at::Tensor& x, const Block& block) const {
    return linear(at::relu(linear(x, block.mlp_in)), block.mlp_out);
  }

  at::Tensor logits(const at::Tensor& tokens) const {
    at::Tensor x = at::embedding(flat.view(token_embedding), tokens);
    for (const Block& block : blocks) {
      x = x + attention(normalize(x, block.attention_norm), block);
      x = x + mlp(normalize(x, block.mlp_norm), block);
    }
    return linear(normalize(x, final_norm), head);
  }

  at::Tensor loss(std::span<const std::int64_t> windows) const {
    const std::int64_t row = shape.context + 1;
    const std::int64_t rows = static_cast<std::int64_t>(windows.size()) / row;
    // from_blob wants a mutable pointer; the tensor is only read.
    const at::Tensor all =
        at::from_blob(const_cast<std::int64_t*>(windows.data()), {rows, row}, at::kLong);
    const at::Tensor inputs = all.narrow(1, 0, shape.context).contiguous();
    const at::Tensor targets = all.narrow(1, 1, shape.context).reshape({-1});
    return at::cross_entropy_loss(logits(inputs).view({-1, shape.vocabulary}), targets);
  }

  GptShape shape;
  FlatParameters flat;
  std::size_t token_embedding = 0;
  std::vector<Block> blocks;
  Affine final_norm;
  Affine head;
  at::Tensor score_bias;
};

Gpt::Gpt(const GptShape& shape, std::uint64_t seed) : impl_(std::make_unique<Impl>(shape)) {
  impl_->initialize(seed);
}
Gpt::~Gpt() = default;

std::span<float> Gpt::parameters() {
  return impl_->flat.values();
}
std::span<float> Gpt::gradient() {
  return impl_->flat.gradients();
}

double Gpt::compute_gradient(std::span<const std::int64_t> windows) {
  clear_gradient();
  return *add_gradient(windows, [] { return false; });
}

void Gpt::clear_gradient() {
  impl_->flat.zero_gradients();
}

std::optional<double> Gpt::add_gradient(std::span<const std::int64_t> windows,
                                        const std::function<bool()>& abandon) {
  const at::Tensor loss = impl_->loss(windows);
  if (abandon()) return std::nullopt;
  loss.backward();
  return loss.item<double>();
}

double Gpt::mean_loss(std::span<const std::int64_t> windows) {
  at::NoGradGuard no_grad;
  return impl_->loss(windows).item<double>();
}

void use_one_compute_thread() {
  at::set_num_threads(1);
  // OpenBLAS has a thread pool that libtorch does not control. Other BLAS libraries do not have
  // this symbol.
  using SetThreads = void (*)(int);
  if (auto set_threads =
          reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) {
    set_threads(1);
  }
}

}  // namespace leeway::tools::train
