// C: the operations. Each has two forms. The first blocks and fills `report`, which may be NULL.
// The second, ..._async, hands out a handle. leeway_work_wait() returns all errors of the
// operation; the _async function itself fails only if an argument cannot be read.
//
// All ranks must issue the collectives of one communicator in the same order. leeway/communicator.h
// gives the rules for counts, types and memory.
#ifndef LEEWAY_C_COLLECTIVES_H
#define LEEWAY_C_COLLECTIVES_H

#include "leeway/c/communicator.h"
#include "leeway/c/options.h"
#include "leeway/c/types.h"
#include "leeway/c/work.h"

#ifdef __cplusplus
extern "C" {
#endif

// The output becomes the reduction of all ranks' inputs. `input` and `output` may be the same
// memory.
LEEWAY_C_EXPORT leeway_status leeway_all_reduce(leeway_communicator* communicator,
                                                leeway_const_tensor input, leeway_tensor output,
                                                const leeway_collective_options* options,
                                                leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_all_reduce_async(leeway_communicator* communicator,
                                                      leeway_const_tensor input,
                                                      leeway_tensor output,
                                                      const leeway_collective_options* options,
                                                      leeway_work** work);

// Rank i receives the reduction of block i; with n ranks, input.count == n * output.count. To work
// in place, output is this rank's own block of input.
LEEWAY_C_EXPORT leeway_status leeway_reduce_scatter(leeway_communicator* communicator,
                                                    leeway_const_tensor input, leeway_tensor output,
                                                    const leeway_collective_options* options,
                                                    leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_reduce_scatter_async(leeway_communicator* communicator,
                                                          leeway_const_tensor input,
                                                          leeway_tensor output,
                                                          const leeway_collective_options* options,
                                                          leeway_work** work);

// Like leeway_reduce_scatter(), but the blocks of input have different lengths. All ranks must give
// the same counts.
LEEWAY_C_EXPORT leeway_status leeway_reduce_scatter_uneven(
    leeway_communicator* communicator, leeway_const_tensor input, leeway_blocks blocks,
    leeway_tensor output, const leeway_collective_options* options, leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_reduce_scatter_uneven_async(
    leeway_communicator* communicator, leeway_const_tensor input, leeway_blocks blocks,
    leeway_tensor output, const leeway_collective_options* options, leeway_work** work);

// Block i of output comes from rank i; with n ranks, output.count == n * input.count. Delivery must
// be exact. To work in place, input is this rank's own block of output.
LEEWAY_C_EXPORT leeway_status leeway_all_gather(leeway_communicator* communicator,
                                                leeway_const_tensor input, leeway_tensor output,
                                                const leeway_collective_options* options,
                                                leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_all_gather_async(leeway_communicator* communicator,
                                                      leeway_const_tensor input,
                                                      leeway_tensor output,
                                                      const leeway_collective_options* options,
                                                      leeway_work** work);

// Like leeway_all_gather(), but the blocks of output have different lengths. All ranks must give
// the same counts.
LEEWAY_C_EXPORT leeway_status leeway_all_gather_uneven(leeway_communicator* communicator,
                                                       leeway_const_tensor input,
                                                       leeway_tensor output, leeway_blocks blocks,
                                                       const leeway_collective_options* options,
                                                       leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_all_gather_uneven_async(
    leeway_communicator* communicator, leeway_const_tensor input, leeway_tensor output,
    leeway_blocks blocks, const leeway_collective_options* options, leeway_work** work);

// On return all ranks hold the root's data.
LEEWAY_C_EXPORT leeway_status leeway_broadcast(leeway_communicator* communicator,
                                               leeway_tensor data, leeway_rank root,
                                               const leeway_collective_options* options,
                                               leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_broadcast_async(leeway_communicator* communicator,
                                                     leeway_tensor data, leeway_rank root,
                                                     const leeway_collective_options* options,
                                                     leeway_work** work);

// The root's output becomes the reduction; other ranks' outputs are not used.
LEEWAY_C_EXPORT leeway_status leeway_reduce(leeway_communicator* communicator,
                                            leeway_const_tensor input, leeway_tensor output,
                                            leeway_rank root,
                                            const leeway_collective_options* options,
                                            leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_reduce_async(leeway_communicator* communicator,
                                                  leeway_const_tensor input, leeway_tensor output,
                                                  leeway_rank root,
                                                  const leeway_collective_options* options,
                                                  leeway_work** work);

// Block i of the root's output comes from rank i; other ranks' outputs are not used.
LEEWAY_C_EXPORT leeway_status leeway_gather(leeway_communicator* communicator,
                                            leeway_const_tensor input, leeway_tensor output,
                                            leeway_rank root,
                                            const leeway_collective_options* options,
                                            leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_gather_async(leeway_communicator* communicator,
                                                  leeway_const_tensor input, leeway_tensor output,
                                                  leeway_rank root,
                                                  const leeway_collective_options* options,
                                                  leeway_work** work);

// Block i of the root's input goes to rank i; other ranks' inputs are not used.
LEEWAY_C_EXPORT leeway_status leeway_scatter(leeway_communicator* communicator,
                                             leeway_const_tensor input, leeway_tensor output,
                                             leeway_rank root,
                                             const leeway_collective_options* options,
                                             leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_scatter_async(leeway_communicator* communicator,
                                                   leeway_const_tensor input, leeway_tensor output,
                                                   leeway_rank root,
                                                   const leeway_collective_options* options,
                                                   leeway_work** work);

// Block j of rank i's input becomes block i of rank j's output.
LEEWAY_C_EXPORT leeway_status leeway_all_to_all(leeway_communicator* communicator,
                                                leeway_const_tensor input, leeway_tensor output,
                                                const leeway_collective_options* options,
                                                leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_all_to_all_async(leeway_communicator* communicator,
                                                      leeway_const_tensor input,
                                                      leeway_tensor output,
                                                      const leeway_collective_options* options,
                                                      leeway_work** work);

// Like leeway_all_to_all(), but blocks have different lengths. Each rank gives its own counts.
LEEWAY_C_EXPORT leeway_status leeway_all_to_all_uneven(
    leeway_communicator* communicator, leeway_const_tensor input, leeway_blocks input_blocks,
    leeway_tensor output, leeway_blocks output_blocks, const leeway_collective_options* options,
    leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_all_to_all_uneven_async(
    leeway_communicator* communicator, leeway_const_tensor input, leeway_blocks input_blocks,
    leeway_tensor output, leeway_blocks output_blocks, const leeway_collective_options* options,
    leeway_work** work);

// A send is matched with a receive of the same ordered pair of ranks and the same tag, in order of
// issue.
LEEWAY_C_EXPORT leeway_status leeway_send(leeway_communicator* communicator,
                                          leeway_const_tensor input, leeway_rank peer,
                                          const leeway_collective_options* options,
                                          leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_send_async(leeway_communicator* communicator,
                                                leeway_const_tensor input, leeway_rank peer,
                                                const leeway_collective_options* options,
                                                leeway_work** work);

// Receives at most output.count elements; leeway_report_message() gives the number that came. The
// peer may be LEEWAY_ANY_RANK.
LEEWAY_C_EXPORT leeway_status leeway_recv(leeway_communicator* communicator, leeway_tensor output,
                                          leeway_rank peer,
                                          const leeway_collective_options* options,
                                          leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_recv_async(leeway_communicator* communicator,
                                                leeway_tensor output, leeway_rank peer,
                                                const leeway_collective_options* options,
                                                leeway_work** work);

// Direction of a message, as seen by this rank.
typedef int32_t leeway_message_kind;
// Values of leeway_message_kind.
enum {
  LEEWAY_SEND = 0,  // reads `data`
  LEEWAY_RECV = 1   // writes `data`
};

// One send or receive of leeway_exchange().
typedef struct leeway_message {
  size_t size;               // bytes of this struct; equal in all messages of one call
  leeway_message_kind kind;  // send or receive
  leeway_data_type dtype;    // type of each element
  void* data;                // the first element; a send does not write it
  size_t count;              // elements to send, or the most that a receive takes
  leeway_rank peer;          // the other rank; a receive may name LEEWAY_ANY_RANK
  uint16_t reserved;         // 0
  uint32_t tag;              // messages of different tags do not wait for each other
} leeway_message;
// A send of no elements to rank 0.
#define LEEWAY_MESSAGE_INIT \
  { sizeof(leeway_message), LEEWAY_SEND, LEEWAY_F32, NULL, 0, 0, 0, 0 }

// Runs any number of sends and receives as one operation, which is done when all of them are. A
// message from this rank to itself needs a send and a receive in the same call. The array is
// copied.
LEEWAY_C_EXPORT leeway_status leeway_exchange(leeway_communicator* communicator,
                                              const leeway_message* messages, size_t count,
                                              const leeway_collective_options* options,
                                              leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_exchange_async(leeway_communicator* communicator,
                                                    const leeway_message* messages, size_t count,
                                                    const leeway_collective_options* options,
                                                    leeway_work** work);

// Returns when all ranks have called leeway_barrier(). `deadline_ns` is measured from the call and
// may be LEEWAY_NO_DEADLINE.
LEEWAY_C_EXPORT leeway_status leeway_barrier(leeway_communicator* communicator, int64_t deadline_ns,
                                             leeway_report* report);
LEEWAY_C_EXPORT leeway_status leeway_barrier_async(leeway_communicator* communicator,
                                                   int64_t deadline_ns, leeway_work** work);

#ifdef __cplusplus
}
#endif

#endif
