/* A call must return a code, and a code below 0 has a message. */
#include <recoup.h>
#include <stdio.h>
#include <string.h>

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

#define CHECK(claim)                                           \
    do {                                                       \
        if (!(claim)) {                                        \
            failures++;                                        \
            printf("line %d: not so: %s\n", __LINE__, #claim); \
        }                                                      \
    } while (0)

/* Whether the last call was refused with such words. */
static inline void says(const char *words)
{
    if (strstr(recoup_message(), words) == NULL) failures++, printf("no \"%s\" in: %s\n", words, recoup_message());
}

static inline void expect(int is_so, const char *what)
{
    if (!is_so) failures++, printf("not so: %s\n", what);
}
