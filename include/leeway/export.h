// LEEWAY_EXPORT: the library is built with hidden visibility; what a shared build offers carries
// this mark.
#pragma once

// Marks a function or class that libleeway.so offers.
#define LEEWAY_EXPORT [[gnu::visibility("default")]]
