// LEEWAY_EXPORT marks what a shared build of the library offers. Everything else has hidden
// visibility.
#pragma once

// Marks a function or class that libleeway.so offers.
#define LEEWAY_EXPORT [[gnu::visibility("default")]]
