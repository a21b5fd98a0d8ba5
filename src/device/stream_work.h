// What is put on streams: copies of rows, and words written and waited for.
#pragma once

#include "device/driver.h"
#include "device/signal.h"
#include "device/transfer.h"

namespace leeway::device {

enum class Direction { to_staging, from_staging };
// kUnavailable, as all below.
Status copy_rows(const Driver& driver, const Copy& copy, std::byte* staging, Direction direction,
                 cuda::Stream stream);

// The stream writes a word of the signal, when all before is done. `by_host`: a function of the
// host does it, where streams cannot.
Status write_word(const Driver& driver, cuda::Stream stream, const Signal& signal, Word word,
                  bool by_host);
// The stream waits until a word has the signal's value or a later one.
Status wait_for_word(const Driver& driver, cuda::Stream stream, const Signal& signal, Word word);

// The status of a call of CUDA.
Status checked(const Driver& driver, const char* what, cuda::Code code);

}  // namespace leeway::device
