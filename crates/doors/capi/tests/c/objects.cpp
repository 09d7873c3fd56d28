/* recoup.hpp: objects close what they own, errors are exceptions with the code of the call, and exceptions of callbacks
 * reach the call that made them. Prints what does not hold. */
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <recoup.hpp>
#if __cplusplus >= 202002L
#include <span>
#endif
#include <string>
#include <vector>

static int failures = 0;

static void expect(bool holds, const char *claim)
{
    if (!holds) {
        std::printf("not so: %s\n", claim);
        failures++;
    }
}

struct Refused {
    int reason;
};

/* The view of the standard in use: a span may be lent while its vector stays. */
#if __cplusplus >= 202002L
static std::span<double> span(std::vector<double> &x) { return x; }
#else
static recoup::Values<double> span(std::vector<double> &x) { return x; }
#endif

static void identity(const double *x, double *y) { std::memcpy(y, x, 100 * sizeof(double)); }

static void test_errors(const std::string &folder)
{
    try {
        recoup::Run run("colour=red");
        expect(false, "unknown options are refused");
    } catch (const recoup::Error &error) {
        expect(error.code() == RECOUP_E_OPTIONS && error.kind() == RECOUP_KIND_REFUSED && std::strstr(error.what(), "colour") != nullptr, error.what());
    }
    recoup::Run run("dir=" + folder + "/errors interval=1it sync");
    std::vector<double> x(100);
    const auto named = recoup::expected([&] { run.protect("no name", recoup::Role::iterate, x); });
    expect(!named && named.error().code() == RECOUP_E_NAME, "a name with a space is refused");
    expect(recoup::expected([&] { run.protect("x", recoup::Role::iterate, x); }).has_value(), "a right call has no error");
    auto restored = recoup::expected([&] { return run.restore(); });
    expect(restored && !*restored, "there is no version yet, which is no error");
    run.close();
    auto closed = recoup::expected([&] { return run.stats(); });
    expect(!closed && closed.error().code() == RECOUP_E_HANDLE, "a closed run has no numbers");
    int thrown = 0;
    try {
        thrown = closed->versions == 0 ? 1 : 2;
    } catch (const recoup::Error &error) {
        thrown = error.code();
    }
    expect(thrown == RECOUP_E_HANDLE, "a value that is not there throws the error");
    expect(recoup::expected([&] { run.close(); }).has_value(), "a closed run may be closed");
}

/* A version of every type; the run is moved before it is used, and ends with its object. */
static void test_run(const std::string &folder)
{
    const std::string options = "dir=" + folder + "/run name=moved interval=1it scheme=exact sync";
    std::vector<double> x(100), b(100, 1.0);
    std::array<float, 3> singles{};
    std::int64_t counts[2] = {};
    std::string text = "........";
    double number = 0;
    for (const bool is_second : {false, true}) {
        auto first = std::make_unique<recoup::Run>(options);
        first->problem(identity, b, {}, 10, RECOUP_OPERATOR_ANY_THREAD);
        recoup::Run run = std::move(*first);
        first.reset();
        run.protect("x", recoup::Role::iterate, span(x));
        run.protect("singles", recoup::Role::dynamic, singles, recoup::Share::replicated());
        run.protect("counts", recoup::Role::dynamic, counts, recoup::Share::local());
        run.protect("text", recoup::Role::dynamic, text, recoup::Share::local());
        run.protect("number", recoup::Role::dynamic, number);
        std::uint64_t rebuilt = 0;
        run.on_restore([&](std::uint64_t iteration, recoup::Resume how) {
            rebuilt = how == recoup::Resume::exact ? iteration : 99;
        });
        const auto restored = run.restore();
        if (!is_second) {
            expect(!restored && rebuilt == 0, "nothing is restored before the first version");
            x.assign(100, 0.5), singles = {1, 2, 3}, counts[1] = INT64_MIN, text = "versions", number = 7;
            run.step(4, 1, 1);
            run.wait();
            expect(run.wait_for(0), "nothing is under way after a wait");
            expect(run.stats().versions == 1, "one version was made");
            x.assign(100, 0), singles = {}, counts[1] = 0, text = "........", number = 0;
        } else {
            expect(restored && restored->iteration == 4 && rebuilt == 4, "the version is back");
            expect(restored && restored->how == recoup::Resume::exact, "it is exact");
            expect(x[99] == 0.5 && singles[2] == 3 && counts[1] == INT64_MIN && text == "versions" && number == 7,
                   "every type is back");
        }
    }
}

/* What a callback throws, the call throws. */
static void test_callbacks(const std::string &folder)
{
    std::vector<double> x(100), b(100, 1.0);
    recoup::Run run("dir=" + folder + "/callbacks interval=1it scheme=lossy sync");
    run.protect("x", recoup::Role::iterate, x);
    run.problem([](const double *, double *) { throw Refused{17}; }, b);
    int reason = 0;
    try {
        run.restore();
    } catch (const Refused &refused) {
        reason = refused.reason;
    }
    expect(reason == 17, "the exception of the operator is that of restore");
}

static void test_tape()
{
    recoup::Tape tape("host=1MiB pages=small");
    std::vector<double> state(50);
    for (int step = 0; step < 5; step++) {
        state.assign(50, step);
        tape.push(static_cast<std::uint64_t>(step), state);
    }
    const std::array<std::uint64_t, 1> order{2};
    tape.announce(order);
    expect(tape.size() == 5 && tape.next() == 2u && tape.steps().size() == 5, "the tape has five states");
    tape.peek(4, state);
    expect(state[49] == 4, "a state is read");
    expect(tape.pop(state) == 2u && state[0] == 2, "the announced state comes first");
    expect(tape.pop(state) == 4u && tape.pop(state) == 3u, "the others follow in reverse");
    const auto peeked = recoup::expected([&] { tape.peek(4, state); });
    expect(!peeked && peeked.error().code() == RECOUP_E_STEP, "a popped state is not there");
    recoup::Tape moved = std::move(tape);
    tape = recoup::Tape("host=1MiB pages=small");
    expect(moved.pop(state) == 1u && moved.pop(state) == 0u && !moved.pop(state), "a moved tape goes on");
    expect(tape.size() == 0 && moved.report().popped == 5 && moved.damaged().empty(), "each has its own states");
    moved.close();
}

/* A block of two columns and a run of two systems, whose first operator is gone when the second is begun. */
static void test_many(const std::string &folder)
{
    std::vector<double> x(210, 1.0), b(210, 2.0), u(100, 3.0);
    {
        recoup::Run run("dir=" + folder + "/block interval=1it sync scheme=lossy");
        run.problem(identity, recoup::Values<const double>(b.data(), 100));
        run.columns(b.data(), 2, 110);
        run.protect_block("x", recoup::Role::iterate, x.data(), 100, 2, 110);
        const std::vector<double> norms = {10.0, 10.0};
        run.known_columns(norms);
        run.step(1, 10.0, 20.0);
        expect(run.stats().versions == 1, "a block is saved");
        const auto refused = recoup::expected([&] { run.known_columns(recoup::Values<const double>(norms.data(), 1)); });
        expect(!refused && refused.error().code() == RECOUP_E_ARGUMENT, "norms of one column are refused");
    }
    for (int life = 0; life < 2; life++) {
        recoup::Run run("dir=" + folder + "/systems systems interval=1it scheme=lossy");
        run.protect("u", recoup::Role::dynamic, u);
        run.protect("x", recoup::Role::iterate, recoup::Values<double>(x.data(), 100));
        const auto first = run.find_system();
        expect(life == 0 ? !first : first == 1, "the second life goes on in the second system");
        for (std::uint64_t index = first.value_or(0); index < 2; index++) {
            auto scale = std::make_unique<double>(1.0 + static_cast<double>(index));
            run.problem(
                [scale = std::shared_ptr<double>(std::move(scale))](const double *v, double *av) {
                    for (int i = 0; i < 100; i++) av[i] = *scale * v[i];
                },
                recoup::Values<const double>(b.data(), 100), {}, 0, RECOUP_OPERATOR_ANY_THREAD);
            run.begin_system(index);
            expect(static_cast<bool>(run.restore()) == (life == 1), "each system finds its own versions only");
            run.step(1, 10.0, 20.0);
        }
        run.close();
    }
}

int main(int, char **argv)
{
    const std::string folder = argv[1];
    test_errors(folder);
    test_run(folder);
    test_callbacks(folder);
    test_many(folder);
    test_tape();
    std::printf("%d failures\n", failures);
    return failures != 0;
}
