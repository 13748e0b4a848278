#pragma once

// What the shared library shows. Everything else is hidden.
#define URMA_API __attribute__((visibility("default")))
