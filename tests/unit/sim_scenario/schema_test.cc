// The schema must keep the promises on which generic code relies.
#include <gtest/gtest.h>

#include "leeway/options.h"
#include "scenario.pb.h"
#include "scenario/field_limits.h"

namespace leeway::sim::scenario {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

void collect(const Descriptor& message, std::vector<const FieldDescriptor*>& out) {
  for (int i = 0; i < message.field_count(); ++i) out.push_back(message.field(i));
  for (int i = 0; i < message.nested_type_count(); ++i) collect(*message.nested_type(i), out);
}

// Returns every field of every message but Limit, which describes fields.
std::vector<const FieldDescriptor*> all_fields() {
  std::vector<const FieldDescriptor*> fields;
  const auto& file = *Scenario::descriptor()->file();
  for (int i = 0; i < file.message_type_count(); ++i) {
    if (file.message_type(i) != Limit::descriptor()) collect(*file.message_type(i), fields);
  }
  return fields;
}

bool is_number(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

double default_of(const FieldDescriptor& field) {
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) return field.default_value_double();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32) return field.default_value_uint32();
  return static_cast<double>(field.default_value_uint64());
}

TEST(Schema, EveryNumberHasALimit) {
  const auto fields = all_fields();
  EXPECT_GT(fields.size(), 150u);
  for (const FieldDescriptor* field : fields) {
    if (!is_number(*field)) continue;
    ASSERT_TRUE(field->options().HasExtension(limit)) << field->full_name();
    const Limit& range = field->options().GetExtension(limit);
    EXPECT_TRUE(range.has_min() && range.has_max() && range.min() < range.max())
        << field->full_name();
  }
}

TEST(Schema, LimitsFitTheirTypes) {
  for (const FieldDescriptor* field : all_fields()) {
    if (!is_number(*field) || field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) continue;
    const Limit& range = field->options().GetExtension(limit);
    const bool wide = field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
    EXPECT_GE(range.min(), 0) << field->full_name();
    EXPECT_LE(range.max(), wide ? 9e15 : 4294967295.0) << field->full_name();
  }
}

TEST(Schema, DefaultsAreWithinTheirLimits) {
  for (const FieldDescriptor* field : all_fields()) {
    if (!is_number(*field) || !field->has_default_value()) continue;
    EXPECT_TRUE(within_limit(*field, default_of(*field))) << field->full_name();
  }
}

// Generic code handles six types of fields, and lists of numbers, texts or messages.
TEST(Schema, HasOnlyTheTypesThatAreHandled) {
  for (const FieldDescriptor* field : all_fields()) {
    const bool message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const bool text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    const bool single =
        !field->is_repeated() &&
        (field->enum_type() != nullptr || field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL);
    EXPECT_TRUE(message || text || single || is_number(*field)) << field->full_name();
  }
}

TEST(Schema, EstimatorsAreTheLibrarysInItsOrder) {
  for (int i = 0; i < Operation::Estimator_descriptor()->value_count(); ++i) {
    const auto* const value = Operation::Estimator_descriptor()->value(i);
    const Result<Estimator> estimator = parse_estimator(value->name());
    ASSERT_TRUE(estimator.ok()) << value->name();
    EXPECT_EQ(static_cast<int>(*estimator), value->number());
  }
  EXPECT_EQ(static_cast<int>(Estimator::augmented) + 1,
            Operation::Estimator_descriptor()->value_count());
}

TEST(Schema, DeliveryKindsAreTheLibrarysInItsOrder) {
  for (const auto kind : {leeway::Delivery::Kind::exact, leeway::Delivery::Kind::bounded,
                          leeway::Delivery::Kind::best_effort}) {
    const auto* const value =
        Delivery::Kind_descriptor()->FindValueByName(std::string(to_string(kind)));
    ASSERT_NE(value, nullptr) << to_string(kind);
    EXPECT_EQ(value->number(), static_cast<int>(kind));
  }
}

TEST(NumberText, IsShortAndReadsBack) {
  EXPECT_EQ(number_text(1e7), "10000000");
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(-3), "-3");
  EXPECT_EQ(number_text(1e300), "1e+300");
}

}  // namespace
}  // namespace leeway::sim::scenario
