#include "scenario/sweep.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "scenario/field_limits.h"
#include "scenario/set_field.h"
#include "scenario/validate.h"

namespace leeway::sim::scenario {
namespace {

using google::protobuf::FieldDescriptor;

Status refuse(const std::string& why) {
  return Status::error(StatusCode::kInvalidArgument, "%s", why.c_str());
}

// Computes factor^exponent by repeated multiplication, because pow() may differ by a bit between
// libraries.
double power(double factor, std::uint32_t exponent) {
  double product = 1.0;
  for (std::uint32_t i = 0; i < exponent; ++i) product *= factor;
  return product;
}

// Returns the positive n-th root of a positive number, by bisection, because pow() differs between
// libraries. 200 halvings of [0, max(1, value)] reach the last bit of every double that a range may
// have.
double root(double value, std::uint32_t n) {
  double low = 0.0, high = std::max(1.0, value);
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    (power(middle, n) < value ? low : high) = middle;
  }
  return high;
}

double nine_digits(double value) {
  char text[40];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, 8).ptr;
  std::from_chars(text, end, value);
  return value;
}

std::vector<double> range_values(const Sweep::Range& range) {
  const std::uint32_t last = range.steps() - 1;
  const double factor = range.log() ? root(range.to() / range.from(), last) : 1.0;
  std::vector<double> values;
  for (std::uint32_t i = 0; i < last; ++i) {
    const double value = range.log() ? range.from() * power(factor, i)
                                     : range.from() + (range.to() - range.from()) * i / last;
    values.push_back(nine_digits(value));
  }
  values.push_back(range.to());
  return values;
}

bool is_whole(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
}

// Rounds halves up. Exact below 2^53, far above every limit.
double rounded(double value) {
  const auto down = static_cast<double>(static_cast<std::int64_t>(value));
  return value - down >= 0.5 ? down + 1 : down;
}

Result<std::vector<std::string>> range_texts(const Sweep::Range& range,
                                             const FieldDescriptor& field) {
  if (range.log() && !(range.from() > 0 && range.to() > 0)) {
    return refuse("a log range needs from and to above 0");
  }
  std::vector<double> values = range_values(range);
  if (is_whole(field)) std::transform(values.begin(), values.end(), values.begin(), rounded);
  if (std::adjacent_find(values.begin(), values.end()) != values.end()) {
    return refuse("has " + std::to_string(range.steps()) + " steps from " +
                  number_text(range.from()) + " to " + number_text(range.to()) +
                  ", of which two are the same; take fewer steps");
  }
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(number_text(value));
  return texts;
}

// A sweep that has been checked.
struct Axis {
  std::string field;
  FieldPath path;
  std::vector<std::string> values;
  std::string title;
  std::vector<std::string> names;  // one name for each value, or none
  bool alone = false;
};

Result<std::vector<Axis>> axes_of(const Scenario& scenario) {
  std::vector<Axis> axes;
  for (const Sweep& sweep : scenario.sweep()) {
    const Result<FieldPath> path = parse_path(*Scenario::descriptor(), sweep.field());
    if (!path.ok()) return path.status();
    const Result<std::vector<std::string>> values = values_of(sweep, *path->back().field);
    if (!values.ok()) return values.status();
    axes.push_back({sweep.field(), *path, *values, sweep.title(),
                    std::vector<std::string>(sweep.names().begin(), sweep.names().end()),
                    sweep.alone()});
  }
  return axes;
}

// A cell of the grid: one index for each axis.
using Choice = std::vector<std::size_t>;

// Splits a cell's index into an index for each axis. The last axis changes fastest.
Choice choice_of(const std::vector<Axis>& axes, std::size_t index) {
  Choice choice(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    choice[i] = index % axes[i].values.size();
    index /= axes[i].values.size();
  }
  return choice;
}

std::vector<Setting> settings_of(const std::vector<Axis>& axes, const Choice& choice) {
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes[i];
    const std::string name = axis.names.empty() ? std::string() : axis.names[choice[i]];
    const bool at_base = !axis.alone || choice[i] == 0;
    settings.push_back({axis.field, axis.values[choice[i]], true, at_base, axis.title, name});
  }
  return settings;
}

// Removes the fields that endpoint tcp_ring does not use.
void clear_leeway_only(google::protobuf::Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->options().GetExtension(leeway_only)) {
      reflection.ClearField(&message, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      clear_leeway_only(*reflection.MutableMessage(&message, field));
    }
  }
}

// Returns true if the cell's endpoint uses the swept field of the axis. A TCP ring uses it if two
// values of the axis differ in a field that the ring reads.
Result<bool> acts_on(const Axis& axis, const Scenario& cell) {
  if (cell.endpoint() != Scenario::tcp_ring) return true;
  std::string first;
  for (const std::string& value : axis.values) {
    Scenario read = cell;
    const Status set = set_field(read, axis.path, value);
    if (!set.ok()) return set;
    clear_leeway_only(read);
    std::string text = read.SerializeAsString();
    if (&value == &axis.values.front()) {
      first = std::move(text);
    } else if (text != first) {
      return true;
    }
  }
  return axis.values.size() < 2;
}

Result<Cell> make_cell(const Scenario& base, const std::vector<Axis>& axes, const Choice& choice) {
  Cell cell{0, settings_of(axes, choice), base};
  Status status;
  for (std::size_t i = 0; status.ok() && i < axes.size(); ++i) {
    status = set_field(cell.scenario, axes[i].path, cell.settings[i].value);
  }
  for (std::size_t i = 0; status.ok() && i < axes.size(); ++i) {
    const Result<bool> acts = acts_on(axes[i], cell.scenario);
    status = acts.status();
    cell.settings[i].acts = acts.ok() && *acts;
  }
  if (!status.ok()) return status;
  return cell;
}

// Returns true if the cell is in the grid. Among cells that differ only in fields that do not act,
// the first one is in the grid. Among the sweeps that vary alone, at most one may have another
// value than its first.
bool is_made(const Cell& cell, const Choice& choice) {
  int away = 0;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    if (!cell.settings[i].acts && choice[i] > 0) return false;
    if (!cell.settings[i].at_base) ++away;
  }
  return away <= 1;
}

Status refuse_cell(const Cell& cell, const Status& status) {
  return refuse("cell " + std::to_string(cell.index) + " (" +
                to_string(cell.settings).substr(0, 120) + "): " + status.c_str());
}

}  // namespace

Result<std::vector<std::string>> values_of(const Sweep& sweep, const FieldDescriptor& field) {
  const int kinds = (sweep.values_size() > 0) + (sweep.texts_size() > 0) + sweep.has_range();
  if (kinds == 0) return refuse("has no values; give it values, texts or a range");
  if (kinds > 1) return refuse("takes one of values, texts and range");
  if (sweep.has_range()) return range_texts(sweep.range(), field);
  std::vector<std::string> texts(sweep.texts().begin(), sweep.texts().end());
  for (const double value : sweep.values()) texts.push_back(number_text(value));
  return texts;
}

Result<std::vector<Cell>> cells(const Scenario& scenario) {
  const Status valid = validate(scenario);
  if (!valid.ok()) return valid;
  const Result<std::vector<Axis>> axes = axes_of(scenario);
  if (!axes.ok()) return axes.status();
  std::size_t count = 1;
  for (const Axis& axis : *axes) count *= axis.values.size();  // validate() bounded the product
  Scenario base = scenario;
  base.clear_sweep();
  base.clear_full();  // the long form may change sweeps
  std::vector<Cell> grid;
  for (std::size_t index = 0; index < count; ++index) {
    const Choice choice = choice_of(*axes, index);
    Result<Cell> cell = make_cell(base, *axes, choice);
    if (!cell.ok()) return cell.status();
    if (!is_made(*cell, choice)) continue;
    cell->index = grid.size();
    const Status sound = validate(cell->scenario);
    if (!sound.ok()) return refuse_cell(*cell, sound);
    grid.push_back(std::move(*cell));
  }
  return grid;
}

std::string to_string(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& setting : settings) {
    if (!setting.acts) continue;
    if (!text.empty()) text += ' ';
    text += setting.field + '=' + setting.value;
  }
  return text;
}

}  // namespace leeway::sim::scenario
