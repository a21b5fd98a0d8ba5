#include "train/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

namespace leeway::tools::train {
namespace {

using testing::HasSubstr;

// Makes text in which any three characters in a row tell their place.
std::string numbered_text(std::size_t lines) {
  std::string text;
  for (std::size_t i = 0; i < lines; ++i) text += std::to_string(1'000'000 + i) + "\n";
  return text;
}

std::string characters_of(const Corpus& corpus, std::span<const std::uint8_t> tokens) {
  std::string text;
  for (const std::uint8_t token : tokens) text.push_back(corpus.character(token));
  return text;
}

TEST(CorpusFromText, PartsTogetherAreTheTextAndDoNotOverlap) {
  const std::string text = numbered_text(100'000);
  const auto corpus = Corpus::from_text("numbers", text);
  ASSERT_TRUE(corpus.ok()) << corpus.status().c_str();
  const std::string training = characters_of(*corpus, corpus->training());
  const std::string validation = characters_of(*corpus, corpus->validation());
  ASSERT_EQ(training.size() + validation.size(), text.size());
  // Putting the blocks of both parts together again gives the text, so each character is in one
  // part, once.
  std::string rebuilt;
  std::size_t t = 0, v = 0;
  for (std::size_t block = 0; rebuilt.size() < text.size(); ++block) {
    const bool held_out = block % Corpus::kValidationEvery == Corpus::kValidationEvery - 1;
    const std::string part = held_out ? validation.substr(v, Corpus::kBlockCharacters)
                                      : training.substr(t, Corpus::kBlockCharacters);
    (held_out ? v : t) += part.size();
    rebuilt += part;
  }
  EXPECT_EQ(rebuilt, text);
}

TEST(CorpusFromText, HoldsOutATenth) {
  const auto corpus = Corpus::from_text("numbers", numbered_text(100'000));
  ASSERT_TRUE(corpus.ok());
  const double share = static_cast<double>(corpus->validation().size()) /
                       static_cast<double>(corpus->validation().size() + corpus->training().size());
  EXPECT_NEAR(share, 0.1, 0.02);
}

TEST(CorpusFromText, ShortestTextHasBothParts) {
  const auto corpus = Corpus::from_text("short", numbered_text(Corpus::kCharactersMin / 8));
  ASSERT_TRUE(corpus.ok()) << corpus.status().c_str();
  EXPECT_NEAR(static_cast<double>(corpus->validation().size()), 0.1 * Corpus::kCharactersMin,
              300.0);
}

TEST(CorpusFromText, RefusesATextThatIsTooShort) {
  const auto corpus = Corpus::from_text("tiny", std::string(Corpus::kCharactersMin - 1, 'a'));
  ASSERT_FALSE(corpus.ok());
  EXPECT_EQ(corpus.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(corpus.status().text()), HasSubstr("tiny holds 9999 characters"));
}

TEST(CorpusFromText, VocabularyIsTheDistinctBytesInOrder) {
  std::string text;
  while (text.size() < Corpus::kCharactersMin)
    text +=
        "b\xFF"
        "a";
  const auto corpus = Corpus::from_text("bytes", text);
  ASSERT_TRUE(corpus.ok());
  EXPECT_EQ(corpus->vocabulary(), 3);
  EXPECT_EQ(corpus->character(0), 'a');
  EXPECT_EQ(corpus->character(1), 'b');
  EXPECT_EQ(corpus->character(2), '\xFF');
}

TEST(CorpusFromText, FingerprintTellsTextsApart) {
  std::string text = numbered_text(2000);
  const auto one = Corpus::from_text("one", text);
  const auto same = Corpus::from_text("same", text);
  text[777] ^= 1;
  const auto other = Corpus::from_text("other", text);
  ASSERT_TRUE(one.ok() && same.ok() && other.ok());
  EXPECT_EQ(one->fingerprint(), same->fingerprint());
  EXPECT_NE(one->fingerprint(), other->fingerprint());
}

TEST(CorpusFromFile, ReadsWhatAFileHolds) {
  const std::string path = testing::TempDir() + "leeway_corpus_test.txt";
  const std::string text = numbered_text(2000);
  std::ofstream(path, std::ios::binary) << text;
  const auto corpus = Corpus::from_file(path);
  std::remove(path.c_str());
  ASSERT_TRUE(corpus.ok()) << corpus.status().c_str();
  EXPECT_EQ(corpus->training().size() + corpus->validation().size(), text.size());
}

TEST(CorpusFromFile, NamesAFileThatIsNotThere) {
  const auto corpus = Corpus::from_file("/nonexistent/text");
  ASSERT_FALSE(corpus.ok());
  EXPECT_THAT(std::string(corpus.status().text()), HasSubstr("/nonexistent/text"));
}

TEST(BatchSamplerBatch, DependsOnSeedStepAndRankOnly) {
  const auto corpus = Corpus::from_text("numbers", numbered_text(20'000));
  ASSERT_TRUE(corpus.ok());
  const auto batch_of = [&](std::uint64_t seed, int rank, std::uint64_t step) {
    BatchSampler sampler(corpus->training(), 33, 4, seed, rank);
    const auto batch = sampler.batch(step);
    return std::vector<std::int64_t>(batch.begin(), batch.end());
  };
  const auto reference = batch_of(1, 0, 5);
  EXPECT_EQ(reference.size(), 4u * 33u);
  EXPECT_EQ(batch_of(1, 0, 5), reference);
  EXPECT_NE(batch_of(2, 0, 5), reference);
  EXPECT_NE(batch_of(1, 1, 5), reference);
  EXPECT_NE(batch_of(1, 0, 6), reference);
}

TEST(BatchSamplerBatch, EveryWindowIsAPieceOfTheText) {
  const auto corpus = Corpus::from_text("numbers", numbered_text(2'000));
  ASSERT_TRUE(corpus.ok());
  const auto text = corpus->training();
  BatchSampler sampler(text, 50, 3, 7, 2);
  for (std::uint64_t step = 0; step < 50; ++step) {
    const auto batch = sampler.batch(step);
    for (std::size_t w = 0; w < 3; ++w) {
      const auto window = batch.subspan(w * 50, 50);
      EXPECT_NE(std::search(text.begin(), text.end(), window.begin(), window.end()), text.end());
    }
  }
}

TEST(BatchSamplerBatch, ReachesTheLastWindow) {
  const std::vector<std::uint8_t> tokens{0, 1, 2, 3};
  BatchSampler sampler(tokens, 3, 1, 1, 0);
  bool first = false, last = false;
  for (std::uint64_t step = 0; step < 64; ++step) {
    const std::int64_t start = sampler.batch(step)[0];
    first |= start == 0;
    last |= start == 1;
  }
  EXPECT_TRUE(first);
  EXPECT_TRUE(last);
}

TEST(BigramPerplexity, IsOneForATextThatOneCharacterForetells) {
  std::string text;
  while (text.size() < 200'000) text += "abcd";
  const auto corpus = Corpus::from_text("cycle", text);
  ASSERT_TRUE(corpus.ok());
  EXPECT_NEAR(bigram_perplexity(*corpus), 1.0, 1e-3);
}

TEST(BigramPerplexity, IsTheAlphabetForRandomCharacters) {
  // A tenth of the characters are scored, so the estimate's relative error is far below a percent.
  std::string text;
  std::uint64_t state = 88172645463325252ULL;
  for (int i = 0; i < 400'000; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    text.push_back(static_cast<char>('a' + (state >> 33) % 8));
  }
  const auto corpus = Corpus::from_text("random", text);
  ASSERT_TRUE(corpus.ok());
  EXPECT_NEAR(bigram_perplexity(*corpus), 8.0, 0.02);
}

}  // namespace
}  // namespace leeway::tools::train
