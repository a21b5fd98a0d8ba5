// Programs as text: C++ source for people, JSON for other languages.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "programs/program.h"
#include "programs/values.h"

namespace leeway::programs {
namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* text, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, text);
  std::vsnprintf(line, sizeof line, text, arguments);
  va_end(arguments);
  return line;
}

constexpr const char* kTypes[] = {"f32", "f64", "f16", "bf16",   "i8",     "i32",    "i64",
                                  "u8",  "u32", "u64", "f8e4m3", "f8e5m2", "boolean"};
const char* name_of(DataType type) {
  return kTypes[static_cast<std::size_t>(type)];
}

std::string view(const Step& step, std::size_t count) {
  return format("{memory(%zu), %zu, DataType::%s}", count * size_of(step.type), count,
                name_of(step.type));
}

std::string list(const std::vector<std::size_t>& numbers) {
  std::string text = "std::vector<std::size_t>{";
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  return text + "}";
}

// Returns source text for a deadline; empty if exact calls have it by default.
std::string deadline_text(const Step& step, int rank) {
  const std::uint32_t cut = step.cuts_us[static_cast<std::size_t>(rank)];
  if (cut > 0) return format("std::chrono::microseconds(%u)", cut);
  if (step.delivery == Delivery::Kind::exact && step.endless) return "no_deadline";
  const bool usual = step.delivery == Delivery::Kind::exact && !step.is_cut();
  return usual ? "" : "std::chrono::seconds(10)";
}

std::string options_text(const Step& step, int rank, std::uint32_t tag) {
  std::string text = "[&] { CollectiveOptions e; ";
  if (is_reduction(step.kind)) {
    text += format("e.op = ReduceOp::%s; ", std::string(leeway::to_string(step.op)).c_str());
    if (step.op == ReduceOp::premul_sum) text += format("e.factor = %d; ", factor_of(step, rank));
    if (step.estimator != Estimator::ratio)
      text += format("e.estimator = Estimator::%s; ",
                     std::string(leeway::to_string(step.estimator)).c_str());
  }
  const std::string deadline = deadline_text(step, rank);
  if (step.delivery == Delivery::Kind::bounded)
    text += "e.delivery = bounded(0.05, " + deadline + "); ";
  if (step.delivery == Delivery::Kind::best_effort)
    text += "e.delivery = best_effort(" + deadline + "); ";
  if (step.delivery == Delivery::Kind::exact && !deadline.empty())
    text += "e.delivery = exact(" + deadline + "); ";
  if (step.spread != Delivery::Kind::exact)
    text += format("e.spread = Delivery::Kind::%s; ",
                   std::string(leeway::to_string(step.spread)).c_str());
  if (step.codec != Codec::native)
    text += format("e.codec = Codec::%s; ", leeway::to_string(CodecOptions(step.codec)).c_str());
  if (step.confirm_use) text += "e.confirm_use = true; ";
  if (tag != 0) text += format("e.tag = %u; ", tag);
  text += "return e; }()";
  return text == "[&] { CollectiveOptions e; return e; }()" ? "{}" : text;
}

// Returns source text for a step's call on one rank; empty if this rank makes none.
std::string call_text(const Step& step, int rank, int size, bool async) {
  const Extent extent = extent_of(step, rank, size);
  const char* const form = async ? "_async" : "";
  const std::string options = options_text(step, rank, 0);
  const std::string in_blocks =
      "Blocks(" + list(extent.input_counts) + ", " + list(extent.input_begins) + ")";
  const std::string out_blocks =
      "Blocks(" + list(extent.output_counts) + ", " + list(extent.output_begins) + ")";
  const bool blocks = step.uneven || step.displaced;
  const std::string name = std::string(to_string(step.kind)) + form;
  const std::string input = view(step, extent.input);
  const std::string output = view(step, extent.output);
  switch (step.kind) {
    case Kind::all_reduce:
      if (step.in_place) return name + "(" + output + ", " + options + ")";
      return name + "(" + input + ", " + output + ", " + options + ")";
    case Kind::reduce_scatter:
      return name + "(" + input + ", " + (blocks ? in_blocks + ", " : "") + output + ", " +
             options + ")";
    case Kind::all_gather:
      return name + "(" + input + ", " + output + ", " + (blocks ? out_blocks + ", " : "") +
             options + ")";
    case Kind::all_to_all:
      return name + "(" + input + ", " + (blocks ? in_blocks + ", " : "") + output + ", " +
             (blocks ? out_blocks + ", " : "") + options + ")";
    case Kind::broadcast:
      return name + format("(%s, %d, %s)", output.c_str(), step.root, options.c_str());
    case Kind::reduce:
    case Kind::gather:
    case Kind::scatter:
      return name +
             format("(%s, %s, %d, %s)", input.c_str(), output.c_str(), step.root, options.c_str());
    case Kind::barrier:
      return name + "(" + deadline_text(step, rank) + ")";
    case Kind::message: {
      const Envelope& one = step.messages.front();
      const std::string tagged = options_text(step, rank, one.tag);
      if (one.from == rank)
        return format("send%s(%s, %d, %s)", form, view(step, one.count).c_str(), one.to,
                      tagged.c_str());
      if (one.to != rank) return {};
      Step received = step;
      if (one.unlike) received.type = kUnlike;
      return format("recv%s(%s, %s, %s)", form, view(received, one.room()).c_str(),
                    one.any ? "kAnyRank" : std::to_string(one.from).c_str(), tagged.c_str());
    }
    case Kind::exchange: {
      std::string text;
      for (const std::size_t i : order_of_messages(step, rank)) {
        const Envelope& one = step.messages[i];
        if (one.from == rank)
          text +=
              format("Message::send(%s, %d, %u), ", view(step, one.count).c_str(), one.to, one.tag);
        if (one.to == rank)
          text += format("Message::recv(%s, %s, %u), ", view(step, one.count + one.spare).c_str(),
                         one.any ? "kAnyRank" : std::to_string(one.from).c_str(), one.tag);
      }
      if (text.empty()) return {};
      text.resize(text.size() - 2);
      return format("exchange%s(std::vector<Message>{", form) + text + "}, " + options + ")";
    }
    default:
      return {};
  }
}

// Returns a comment that marks a step which happens later, on another thread.
std::string later_text(const Step& step) {
  return step.after_us > 0 ? format("  /* %u us from here, on another thread */", step.after_us)
                           : "";
}

std::string step_text(const Step& step, std::size_t index, int rank, int size) {
  const bool among = (step.who >> rank & 1) != 0;
  const int made = Groups::made(step, rank, size);
  const auto self = static_cast<std::size_t>(rank);
  switch (step.kind) {
    case Kind::split:
      return format("take(c[%d], c[%d]->split(%d, %d));", made < 0 ? 0 : made, step.comm,
                    step.colors[self], step.keys[self]);
    case Kind::create:
      return format("o.communicator_name = \"c%d\"; take(c[%d], Communicator::create(o));", made,
                    made);
    case Kind::shrink: {
      if (made < 0) return {};
      std::string out;
      for (int i = 0; i < size; ++i)
        if ((step.who >> i & 1) != 0) out += (out.empty() ? "" : ", ") + std::to_string(i);
      return format("take(c[%d], c[%d]->shrink(std::vector<Rank>{%s}));", made, step.comm,
                    out.c_str());
    }
    case Kind::allocate:
      return format("auto m%zu = c[%d]->allocate(%zu); say(m%zu.status());", index, step.comm,
                    step.count, index);
    case Kind::destroy:
      return among ? format("c[%d].reset();", step.comm) : "";
    case Kind::abort:
      return among ? format("c[%d]->abort();%s", step.comm, later_text(step).c_str()) : "";
    case Kind::wrong:
      return among ? format("(void)c[%d]->broadcast(%s, %d);  /* wrong arguments, of kind %u */",
                            step.comm, view(step, 1).c_str(), size, step.salt % 10)
                   : "";
    case Kind::fork:
      return among ? format("if (fork() == 0) _exit(c[%d]->barrier().ok());", step.comm) : "";
    case Kind::leave:
      return among ? "kill(getpid(), SIGKILL);" + later_text(step) : "";
    case Kind::pause:
      return among ? format("std::this_thread::sleep_for(std::chrono::microseconds(%u));",
                            step.after_us)
                   : "";
    case Kind::sync:
      return "meet.arrive_and_wait();";
    default:
      break;
  }
  const Way& way = step.ways[self];
  const bool async = way.how != Way::How::blocking;
  const bool differs = step.kind == Kind::mismatch;
  std::string call = call_text(differs ? differing(step, among) : step, rank, size, async);
  if (call.empty()) return {};
  if (differs) call += "/* ranks differ: " + std::string(to_string(step.difference)) + " */";
  if (!async) return format("say(c[%d]->", step.comm) + call + ".status());";
  std::string text = format("w[%zu] = c[%d]->", index, step.comm) + call + ";";
  if (way.how == Way::How::called)
    text += format(" w[%zu].on_done([&w, say] { say(w[%zu].wait().status()); });", index, index);
  return text;
}

// Returns source text for the waits that are due before step `at`, or at the end.
std::string waits_text(const Program& program, const Groups& groups, int rank, std::size_t at) {
  std::string text;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const bool differs = step.kind == Kind::mismatch;
    if (!is_collective(step.kind) && step.kind != Kind::message && step.kind != Kind::exchange &&
        !differs)
      continue;
    const std::vector<int>& members = groups.of(step.comm);
    const auto self = std::find(members.begin(), members.end(), rank);
    if (self == members.end()) continue;
    const auto own = static_cast<std::size_t>(self - members.begin());
    const Way& way = step.ways[own];
    if (way.how == Way::How::blocking) continue;
    if (!differs &&
        call_text(step, static_cast<int>(own), static_cast<int>(members.size()), true).empty())
      continue;
    const std::size_t due = std::min(std::max(i + way.later, i + 1), program.steps.size());
    if (due == at) text += format("say(w[%zu].wait().status()); ", i);
  }
  return text;
}

std::string options_source(const Program& program) {
  switch (program.route) {
    case Route::automatic:
    case Route::inproc:
      return "";
    case Route::near:
    case Route::shm:
      return "o.transport = TransportKind::shm; ";
    case Route::mixed:
      return "o.transport = TransportKind::mixed; ";
    case Route::udp:
      return "o.transport = TransportKind::udp; ";
    case Route::sites:
      return format("o.transport = TransportKind::udp; o.site = rank < %d ? \"east\" : \"west\"; ",
                    program.ranks / 2);
    case Route::lanes:
      return "o.transport = TransportKind::udp; o.lanes = 2; ";
    case Route::sealed:
      return "o.transport = TransportKind::udp; o.secret = \"6c2f1bd09f3f0d3c2b8e4a7795d1c0ffee0123"
             "456789abcdef1032547698badc\"; ";
    case Route::faulted:
      return "o.transport = TransportKind::udp; o.faults = *parse_faults(\"loss=0.05,dup=0.02,"
             "reorder=0.05,corrupt=0.01\"); ";
  }
  return "";
}

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

template <typename T>
std::string json_list(const std::vector<T>& numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += (i > 0 ? "," : "") + std::to_string(numbers[i]);
  return text + "]";
}

}  // namespace

std::string as_source(const Program& program, std::string_view why) {
  const Groups groups(program);
  std::string text =
      format("// Seed %llu, route %s, %s: ", static_cast<unsigned long long>(program.seed),
             std::string(to_string(program.route)).c_str(),
             program.processes ? "ranks were processes" : "ranks are threads");
  text += std::string(why);
  text +=
      "\n#include <leeway/leeway.h>\n\n#include <barrier>\n#include <cstdio>\n#include "
      "<cstdlib>\n#include <thread>\n#include <vector>\n\nusing namespace leeway;\n\n"
      "void* memory(std::size_t bytes) { return std::calloc(bytes + 1, 1); }\n\nint main() {\n"
      "  const auto store = std::make_shared<InprocRendezvous>();\n";
  text += format("  std::barrier meet(%d);\n  const auto run = [&](int rank) {\n", program.ranks);
  text +=
      "    const auto say = [rank](const Status& one) { if (!one.ok()) std::printf(\"rank %d: "
      "%s\\n\", rank, one.c_str()); };\n"
      "    const auto take = [say](std::unique_ptr<Communicator>& to, "
      "Result<std::unique_ptr<Communicator>> made) {\n"
      "      say(made.status());\n      if (made.ok()) to = std::move(*made);\n    };\n";
  text += format(
      "    Options o; o.rank = rank; o.world_size = %d; o.store = store; o.bind_address = "
      "\"127.0.0.1\"; ",
      program.ranks);
  text += options_source(program);
  text += format(
      "\n    std::vector<std::unique_ptr<Communicator>> c(%d);\n    std::vector<Work> "
      "w(%zu);\n    take(c[0], Communicator::create(o));\n",
      groups.count(), program.steps.size());
  for (std::size_t i = 0; i <= program.steps.size(); ++i) {
    std::vector<std::string> lines;
    for (int rank = 0; rank < program.ranks; ++rank) {
      std::string line = waits_text(program, groups, rank, i);
      if (i < program.steps.size()) {
        const Step& step = program.steps[i];
        const std::vector<int>& members = groups.of(step.comm);
        const auto self = std::find(members.begin(), members.end(), rank);
        if (self != members.end())
          line += step_text(step, i, static_cast<int>(self - members.begin()),
                            static_cast<int>(members.size()));
      }
      lines.push_back(line);
    }
    const bool alike = std::all_of(lines.begin(), lines.end(),
                                   [&](const std::string& one) { return one == lines[0]; });
    if (alike) {
      if (!lines[0].empty()) text += "    " + lines[0] + "\n";
      continue;
    }
    for (std::size_t rank = 0; rank < lines.size(); ++rank)
      if (!lines[rank].empty())
        text += format("    if (rank == %zu) { ", rank) + lines[rank] + " }\n";
  }
  text += format(
      "  };\n  std::vector<std::thread> ranks;\n  for (int rank = 0; rank < %d; ++rank) "
      "ranks.emplace_back(run, rank);\n  for (std::thread& one : ranks) one.join();\n"
      "  std::puts(\"done\");\n}\n",
      program.ranks);
  return text;
}

std::string as_json(const Program& program) {
  const Groups groups(program);
  std::string text = format("{\"seed\":%llu,\"ranks\":%d,\"groups\":[",
                            static_cast<unsigned long long>(program.seed), program.ranks);
  for (int comm = 0; comm < groups.count(); ++comm)
    text += (comm > 0 ? "," : "") + json_list(groups.of(comm));
  text += "],\"steps\":[";
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    text += i > 0 ? ",\n" : "\n";
    text += "{\"kind\":" + quoted(to_string(step.kind)) + format(",\"comm\":%d", step.comm) +
            format(",\"salt\":%u,\"count\":%zu,\"root\":%d,\"made\":%d,\"who\":%u", step.salt,
                   step.count, step.root, step.made, step.who) +
            ",\"type\":" + quoted(name_of(step.type)) +
            ",\"op\":" + quoted(leeway::to_string(step.op)) +
            ",\"uneven\":" + (step.uneven ? "true" : "false") +
            ",\"colors\":" + json_list(step.colors) + ",\"keys\":" + json_list(step.keys);
    text += ",\"ways\":[";
    for (std::size_t rank = 0; rank < step.ways.size(); ++rank)
      text += format("%s[%d,%d]", rank > 0 ? "," : "", static_cast<int>(step.ways[rank].how),
                     static_cast<int>(step.ways[rank].later));
    text += "],\"messages\":[";
    for (std::size_t m = 0; m < step.messages.size(); ++m) {
      const Envelope& one = step.messages[m];
      text +=
          format("%s{\"from\":%d,\"to\":%d,\"count\":%zu,\"tag\":%u,\"any\":%s}", m > 0 ? "," : "",
                 one.from, one.to, one.count, one.tag, one.any ? "true" : "false");
    }
    text += "]}";
  }
  return text + "]}\n";
}

}  // namespace leeway::programs
