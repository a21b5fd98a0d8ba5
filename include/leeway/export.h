// LEEWAY_EXPORT: the library is built with hidden visibility; what a shared build offers carries
// this mark.
#pragma once

#define LEEWAY_EXPORT [[gnu::visibility("default")]]
