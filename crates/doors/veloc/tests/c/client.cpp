/* The C++ interface: regions of memory and objects, under names and without, into a version and back.
 *
 *   client CONFIG
 *
 * Prints each claim that does not hold; the exit code is their number. */

#include <fstream>
#include <memory>

#include "veloc.hpp"

static int failures;

static void claim(bool holds, const char *what, int line) {
    if (!holds) {
        std::cout << "line " << line << ": " << what << std::endl;
        failures++;
    }
}

#define HOLDS(what) claim(what, #what, __LINE__)

/* A list of words, which has no fixed size. */
struct words_t {
    std::vector<std::string> words;

    void save(std::ostream &out) const {
        for (auto &word : words)
            out << word << '\n';
    }

    bool load(std::istream &in) {
        words.clear();
        for (std::string word; std::getline(in, word);)
            words.push_back(word);
        return words.empty() || words.back() != "unreadable";
    }

    void protect(veloc::client_t *client, int id) {
        HOLDS(client->mem_protect(id, [this](std::ostream &out) { save(out); }, [this](std::istream &in) { return load(in); }));
    }

    void protect(veloc::client_t *client, int id, const std::string &name) {
        HOLDS(client->mem_protect(
            id, [this](std::ostream &out) { save(out); }, [this](std::istream &in) { return load(in); }, name));
    }
};

static void memory_and_objects(veloc::client_t *client) {
    std::vector<std::string> seen;
    auto observe = [&seen](const std::string &name, int version) { seen.push_back(name + std::to_string(version)); };
    HOLDS(client->register_observer(VELOC_OBSERVE_CKPT_END, observe));
    HOLDS(!client->register_observer(VELOC_OBSERVE_CKPT_END, observe));
    double x[3] = {1, 2, 3};
    words_t words{{"a", "bc"}}, none{{}};
    HOLDS(client->mem_protect(0, x, 3, sizeof *x));
    words.protect(client, 1);
    none.protect(client, 2);
    HOLDS(client->restart_test("mixed", 0) == VELOC_FAILURE);
    HOLDS(client->checkpoint("mixed", 1));
    words.words = {"longer", "than", "before"};
    HOLDS(client->checkpoint("mixed", 2));
    HOLDS((seen == std::vector<std::string>{"mixed1", "mixed2"}));
    HOLDS(client->checkpoint_wait() && client->checkpoint_finished());
    HOLDS(client->restart_test("mixed", 0) == 2 && client->restart_test("mixed", 2) == 1);
    x[1] = 0;
    none.words = {"new"};
    HOLDS(client->restart("mixed", 1));
    HOLDS(x[1] == 2 && (words.words == std::vector<std::string>{"a", "bc"}) && none.words.empty());
    HOLDS(client->restart("mixed", 2) && words.words.size() == 3);
    HOLDS(!client->restart("mixed", 3));
    client->mem_clear();
    HOLDS(!client->mem_unprotect(0));
    HOLDS(!client->register_observer(VELOC_OBSERVE_CKPT_END, nullptr));
}

static void selections(veloc::client_t *client) {
    int k = 5;
    words_t one{{"one"}}, two{{"two"}};
    HOLDS(client->mem_protect(0, &k, 1, sizeof k));
    one.protect(client, 1);
    two.protect(client, 2);
    HOLDS(client->checkpoint_begin("part", 1));
    HOLDS(client->checkpoint_mem(VELOC_CKPT_SOME, {1}));
    HOLDS(!client->checkpoint_mem(VELOC_CKPT_SOME, {9}));
    HOLDS(client->checkpoint_mem(VELOC_CKPT_REST, {1, 2}));
    HOLDS(client->checkpoint_end(true));
    k = 0;
    one.words.clear();
    HOLDS(client->restart_begin("part", 1));
    HOLDS(client->recover_size(0) == sizeof k && client->recover_size(1) == 4 && client->recover_size(2) == 0);
    HOLDS(!client->recover_mem(VELOC_RECOVER_SOME, {2}));
    HOLDS(client->recover_mem(VELOC_RECOVER_SOME, {1}));
    HOLDS(k == 0 && one.words == std::vector<std::string>{"one"});
    HOLDS(client->recover_mem(VELOC_RECOVER_REST, {1}));
    HOLDS(k == 5 && two.words == std::vector<std::string>{"two"});
    HOLDS(client->restart_end(true));
    HOLDS(client->mem_unprotect(1) && client->mem_unprotect(2));
    client->mem_clear();
}

static void names(veloc::client_t *client) {
    int common = 1, own = 2;
    words_t object{{"own"}};
    HOLDS(client->mem_protect(0, &common, 1, sizeof common));
    HOLDS(client->mem_protect(1, &own, 1, sizeof own, "own"));
    object.protect(client, 2, "own");
    HOLDS(client->checkpoint("own", 1) && client->checkpoint("other", 1));
    common = own = 0;
    object.words.clear();
    HOLDS(client->restart("own", 1));
    HOLDS(common == 0 && own == 2 && object.words.size() == 1);
    HOLDS(client->restart("other", 1) && common == 1);
    HOLDS(client->mem_unprotect(2, "own"));
    client->mem_clear("own");
    HOLDS(client->cleanup("own"));
    client->mem_clear();
}

static void refusals(veloc::client_t *client) {
    words_t bad{{"unreadable"}};
    bad.protect(client, 0);
    HOLDS(client->checkpoint("bad", 1) && !client->restart("bad", 1));
    auto broken = [](std::ostream &out) { out.setstate(std::ios::badbit); };
    HOLDS(client->mem_protect(0, broken, [](std::istream &) { return true; }));
    HOLDS(!client->checkpoint("bad", 2) && client->restart_test("bad", 0) == 1);
    auto thrown = [](std::ostream &) { throw std::runtime_error("full"); };
    HOLDS(client->mem_protect(0, thrown, [](std::istream &) { return true; }));
    HOLDS(!client->checkpoint("bad", 2));
    HOLDS(!client->mem_protect(0, nullptr, [](std::istream &) { return true; }));
    client->mem_clear();
    /* The part of another rank. */
    HOLDS(client->restart_test("mixed", 0, 7) == VELOC_FAILURE && !client->restart("mixed", 1, 7));
    HOLDS(client->restart_test("mixed", 0, 3) == 2);
}

static void files(veloc::client_t *client) {
    HOLDS(client->route_file("outside").empty());
    HOLDS(client->checkpoint_begin("file", 1));
    std::ofstream(client->route_file("written")) << "text";
    HOLDS(client->checkpoint_end(true));
    HOLDS(client->restart_begin("file", 1));
    std::string found;
    std::ifstream(client->route_file("read")) >> found;
    HOLDS(found == "text" && client->restart_end(true));
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 99;
    try {
        veloc::get_client(3u, "no/such/file");
        HOLDS(false && "a client without a configuration");
    } catch (const std::runtime_error &) {
    }
    std::unique_ptr<veloc::client_t> client(veloc::get_client(3u, argv[1]));
    HOLDS(veloc::get_client(3u, argv[1]) == client.get());
    memory_and_objects(client.get());
    selections(client.get());
    names(client.get());
    refusals(client.get());
    files(client.get());
    client.reset();
    HOLDS(!VELOC_Initialized());
    client.reset(veloc::get_client(3u, argv[1]));
    HOLDS(client->restart_test("mixed", 0) == 2);
    return failures;
}
