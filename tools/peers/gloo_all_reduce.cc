// Gloo's ring all-reduce over TCP. Starts its own ranks as processes on loopback; with --rank, it
// is one rank of a group that another program starts. Ranks meet in a file store.

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "measurement.h"

namespace {

class GlooAllReducer : public peers::AllReducer {
 public:
  GlooAllReducer(int rank, const peers::Arguments& arguments, const std::string& store_folder) {
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, arguments.ranks);
    gloo::rendezvous::FileStore store(store_folder);
    const gloo::transport::tcp::attr attributes(arguments.address.c_str());
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context->connectFullMesh(store, device);
    context_ = std::move(context);
  }
  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  void barrier() override {
    gloo::BarrierOptions options(context_);
    options.setTag(1);
    gloo::barrier(options);
  }

  void sum(const float* input, float* output, std::size_t count) override {
    reduce(const_cast<float*>(input), output, count,
           &gloo::sum<float>);  // Gloo's setInput takes no const
  }

  void maximum(std::vector<double>& values) override {
    std::vector<double> input = values;
    reduce(input.data(), values.data(), values.size(), &gloo::max<double>);
  }

 private:
  template <typename T>
  void reduce(T* input, T* output, std::size_t count,
              void (*combine)(void*, const void*, const void*, std::size_t)) {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setTag(2);
    options.setInput(input, count);
    options.setOutput(output, count);
    options.setReduceFunction(combine);
    gloo::allreduce(options);
  }

  std::shared_ptr<gloo::Context> context_;
};

int run_rank(int rank, const peers::Arguments& arguments, const std::string& store_folder) try {
  GlooAllReducer reducer(rank, arguments, store_folder);
  const bool right = peers::measure(reducer, "gloo", arguments);
  reducer.barrier();  // so that no rank closes its sockets while another one still reads
  return right ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "gloo rank %d: %s\n", rank, error.what());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const peers::Arguments arguments = peers::parse_arguments(argc, argv);
  if (arguments.rank >= 0) return run_rank(arguments.rank, arguments, arguments.store);
  char store_folder[] = "/tmp/leeway_gloo_XXXXXX";
  if (mkdtemp(store_folder) == nullptr) {
    std::perror("mkdtemp");
    return 1;
  }
  for (int rank = 0; rank < arguments.ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) _exit(run_rank(rank, arguments, store_folder));
    if (child < 0) {
      std::perror("fork");
      return 1;
    }
  }
  int exit_code = 0;
  for (int status = 0; wait(&status) > 0;) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) exit_code = 1;
  }
  std::filesystem::remove_all(store_folder);
  return exit_code;
}
