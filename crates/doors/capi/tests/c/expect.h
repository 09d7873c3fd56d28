/* A call must return a code, and a code below 0 has a message. */
#include <recoup.h>
#include <stdio.h>

static int failures;

#define EXPECT(call, code)                                                                                      \
    do {                                                                                                        \
        int found_ = (call);                                                                                    \
        if (found_ != (code)) {                                                                                 \
            failures++;                                                                                         \
            printf("line %d: %s: %d expected, %d found: %s\n", __LINE__, #call, (code), found_, recoup_message()); \
        }                                                                                                       \
        if (found_ < 0 && recoup_message()[0] == 0) {                                                           \
            failures++;                                                                                         \
            printf("line %d: %s: no message\n", __LINE__, #call);                                               \
        }                                                                                                       \
    } while (0)
