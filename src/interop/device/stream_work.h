// Puts work on streams: copies of rows, and writing and waiting for words.
#pragma once

#include <span>

#include "device/driver.h"
#include "device/signal.h"
#include "device/transfer.h"

namespace leeway::device {

enum class Direction { to_staging, from_staging };
// Copies rows. Like all functions below, returns kUnavailable if CUDA refuses.
Status copy_rows(const Driver& driver, const Copy& copy, std::byte* staging, Direction direction,
                 cuda::Stream stream);

// Makes the stream write a word of the signal when all earlier work is done. `by_host`: a host
// function writes the word, for streams that cannot.
Status write_word(const Driver& driver, cuda::Stream stream, const Signal& signal, Word word,
                  bool by_host);
// Makes the stream wait until a word has the signal's value or a later one.
Status wait_for_word(const Driver& driver, cuda::Stream stream, const Signal& signal, Word word);

// Makes the streams `later` wait for all work that is on `earlier` now, by recording `event`.
Status let_wait(const Driver& driver, cuda::Event event, cuda::Stream earlier,
                std::span<const cuda::Stream> later);

// Makes the stream write `reached`, and run the kernels that encode once the host has written
// `begun`.
Status encode_on(const Driver& driver, cuda::Stream stream, const Site& site, StepKernels& kernels);
// Makes the stream run the kernels that sum once the host has written `landed`, and then write
// `reduced`.
Status reduce_on(const Driver& driver, cuda::Stream stream, const Site& site, StepKernels& kernels);

// Converts the result of a CUDA call to a status.
Status checked(const Driver& driver, const char* what, cuda::Code code);

}  // namespace leeway::device
