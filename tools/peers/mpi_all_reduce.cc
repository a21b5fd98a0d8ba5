// MPI_Allreduce of any MPI library. The arguments of mpirun choose the network.

#include <mpi.h>

#include "measurement.h"

namespace {

class MpiAllReducer : public peers::AllReducer {
 public:
  MpiAllReducer() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void sum(const float* input, float* output, std::size_t count) override {
    MPI_Allreduce(input, output, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void maximum(std::vector<double>& values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
  }

 private:
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const peers::Arguments arguments = peers::parse_arguments(argc, argv);
  MpiAllReducer reducer;
  const bool right = peers::measure(reducer, "mpi", arguments);
  MPI_Finalize();
  return right ? 0 : 1;
}
