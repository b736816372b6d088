// A client of `irgauge serve --socket PATH` in one header: C++17, POSIX, no exceptions, no RTTI, no dependencies.
//
//   irgauge::Client client;
//   if (!client.connect("/run/user/1000/irgauge.sock")) { /* client.error() says why; use your old heuristic */ }
//   std::vector<irgauge::Function> functions;
//   if (client.predict(mlir, functions, {"latency_ns", "spills"}))
//     for (const auto &estimate : functions[0].estimates) ...
//
// Every call returns false instead of throwing, within the time limit; after a false, error() says why. A client is
// for one thread at a time: give each thread its own.
#ifndef IRGAUGE_CLIENT_HPP
#define IRGAUGE_CLIENT_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace irgauge {

/// The prediction of one target.
struct Estimate {
  std::string device; ///< "x86-64-v3"
  std::string target; ///< "latency_ns"
  double value = 0;   ///< in `unit`
  double low = 0;     ///< 95 % interval around `value`
  double high = 0;
  std::string unit;
  std::string status; ///< "ok", or "outside": unlike the training programs, fall back to the old heuristic
  bool ok() const { return status == "ok"; }
};

/// All predictions for one function.
struct Function {
  std::string name;
  std::vector<std::string> warnings;
  std::vector<Estimate> estimates;
  /// The estimate of a target, or nullptr.
  const Estimate *find(const std::string &target) const {
    for (const Estimate &estimate : estimates)
      if (estimate.target == target) return &estimate;
    return nullptr;
  }
};

/// One candidate of a ranking.
struct Ranked {
  std::size_t position = 0; ///< where it stood among the candidates given, from 0
  Estimate estimate;
};

namespace detail {

struct Json {
  enum Kind { Null, Bool, Number, String, Array, Object } kind = Null;
  bool boolean = false;
  double number = 0;
  std::string string;
  std::vector<Json> items;       // of an array, or the values of an object
  std::vector<std::string> keys; // of an object
  const Json *get(const char *key) const {
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (keys[i] == key) return &items[i];
    return nullptr;
  }
  std::string text(const char *key) const {
    const Json *found = get(key);
    return found && found->kind == String ? found->string : std::string();
  }
  double real(const char *key) const {
    const Json *found = get(key);
    return found && found->kind == Number ? found->number : 0;
  }
};

/// Reads one JSON value; false where the text is anything else.
class JsonReader {
public:
  explicit JsonReader(const std::string &text) : at_(text.c_str()), end_(text.c_str() + text.size()) {}
  bool read(Json &out) {
    if (!value(out, 0)) return false;
    space();
    return at_ == end_;
  }

private:
  const char *at_, *end_;

  void space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }
  bool take(char wanted) {
    space();
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  bool word(const char *wanted) {
    const std::size_t n = std::strlen(wanted);
    if (static_cast<std::size_t>(end_ - at_) < n || std::memcmp(at_, wanted, n) != 0) return false;
    at_ += n;
    return true;
  }
  bool value(Json &out, int depth) {
    if (depth > 64) return false;
    space();
    if (at_ == end_) return false;
    switch (*at_) {
    case '"': out.kind = Json::String; return string(out.string);
    case 'n': return word("null");
    case 't': out.kind = Json::Bool; out.boolean = true; return word("true");
    case 'f': out.kind = Json::Bool; return word("false");
    case '[':
    case '{': {
      const bool object = *at_++ == '{';
      const char close = object ? '}' : ']';
      out.kind = object ? Json::Object : Json::Array;
      if (take(close)) return true;
      do {
        if (object) {
          out.keys.emplace_back();
          space();
          if (at_ == end_ || *at_ != '"' || !string(out.keys.back()) || !take(':')) return false;
        }
        out.items.emplace_back();
        if (!value(out.items.back(), depth + 1)) return false;
      } while (take(','));
      return take(close);
    }
    default: {
      char *after = nullptr;
      out.kind = Json::Number;
      out.number = std::strtod(at_, &after); // the text ends with a NUL, so it stops in time
      if (after == at_) return false;
      at_ = after;
      return true;
    }
    }
  }
  bool hex(std::uint32_t &out) {
    out = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ == end_) return false;
      const char c = *at_;
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return false;
      out = out * 16 + static_cast<std::uint32_t>(digit);
    }
    return true;
  }
  bool string(std::string &out) {
    ++at_;
    while (at_ != end_ && *at_ != '"') {
      if (*at_ != '\\') {
        out += *at_++;
        continue;
      }
      if (++at_ == end_) return false;
      const char c = *at_++;
      const char *plain = std::strchr("\"\"\\\\//b\bf\fn\nr\rt\t", c); // pairs: letter, what it stands for
      if (c == 'u') {
        std::uint32_t code = 0, second = 0;
        if (!hex(code)) return false;
        if (code >= 0xD800 && code < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
          at_ += 2;
          if (!hex(second)) return false;
          code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
        }
        utf8(code, out);
      } else if (plain && c) {
        out += plain[1];
      } else {
        return false;
      }
    }
    if (at_ == end_) return false;
    ++at_;
    return true;
  }
  static void utf8(std::uint32_t code, std::string &out) {
    if (code < 0x80) {
      out += static_cast<char>(code);
      return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xC0, 0xE0, 0xF0};
    out += static_cast<char>(first[more] | (code >> (6 * more)));
    for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
  }
};

/// A JSON string. Bytes that are not UTF-8 are sent as U+FFFD: one stray byte in a name must not lose the answer.
inline std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[i++];
    } else if (c < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
      ++i;
    } else if (c < 0x80) {
      out += text[i++];
    } else {
      const std::size_t n = c >= 0xF0 && c < 0xF5 ? 4 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xC2 && c < 0xE0 ? 2 : 0;
      bool good = n != 0 && i + n <= text.size();
      for (std::size_t k = 1; good && k < n; ++k) good = (static_cast<unsigned char>(text[i + k]) & 0xC0) == 0x80;
      if (good && n > 2) { // overlong forms, surrogates, beyond U+10FFFF
        const unsigned char second = static_cast<unsigned char>(text[i + 1]);
        good = !((c == 0xE0 && second < 0xA0) || (c == 0xED && second > 0x9F) || (c == 0xF0 && second < 0x90) ||
                 (c == 0xF4 && second > 0x8F));
      }
      out += good ? text.substr(i, n) : "\xEF\xBF\xBD";
      i += good ? n : 1;
    }
  }
  return out + '"';
}

inline std::string quoted(const std::vector<std::string> &texts) {
  std::string out = "[";
  for (const std::string &text : texts) {
    if (out.size() > 1) out += ',';
    out += quoted(text);
  }
  return out + ']';
}

inline Estimate estimate(const Json &json) {
  Estimate out;
  out.device = json.text("device");
  out.target = json.text("target");
  out.value = json.real("value");
  out.low = json.real("low");
  out.high = json.real("high");
  out.unit = json.text("unit");
  out.status = json.text("status");
  return out;
}

} // namespace detail

class Client {
public:
  Client() = default;
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;
  ~Client() { close(); }

  /// Connect to the socket of a running server. `timeout_ms` holds for each later call too.
  bool connect(const std::string &path, int timeout_ms = 5000) {
    close();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return fail("the path of the socket is too long: " + path);
    std::memcpy(address.sun_path, path.c_str(), path.size());
    socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (socket_ < 0) return fail(std::string("no socket: ") + std::strerror(errno));
    timeval limit{};
    limit.tv_sec = timeout_ms / 1000;
    limit.tv_usec = (timeout_ms % 1000) * 1000;
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (::connect(socket_, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) {
      const std::string reason = std::strerror(errno);
      close();
      return fail(path + ": " + reason);
    }
    return true;
  }

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
    received_.clear();
  }

  /// Predict all functions of a module; every target and device where `targets` and `device` are empty.
  bool predict(const std::string &mlir, std::vector<Function> &out, const std::vector<std::string> &targets = {},
               const std::string &device = "") {
    std::string request = ",\"mlir\":" + detail::quoted(mlir);
    if (!targets.empty()) request += ",\"targets\":" + detail::quoted(targets);
    if (!device.empty()) request += ",\"device\":" + detail::quoted(device);
    detail::Json answer;
    if (!call(request, answer)) return false;
    const detail::Json *functions = answer.get("functions");
    if (!functions) return fail("the answer has no functions");
    out.clear();
    for (const detail::Json &json : functions->items) {
      Function function;
      function.name = json.text("function");
      if (const detail::Json *warnings = json.get("warnings"))
        for (const detail::Json &warning : warnings->items) function.warnings.push_back(warning.string);
      if (const detail::Json *predictions = json.get("predictions"))
        for (const detail::Json &one : predictions->items) function.estimates.push_back(detail::estimate(one));
      out.push_back(std::move(function));
    }
    return true;
  }

  /// Order variants of one function, best first.
  bool rank(const std::vector<std::string> &candidates, std::vector<Ranked> &out,
            const std::string &target = "latency_ns") {
    detail::Json answer;
    if (!call(",\"op\":\"rank\",\"target\":" + detail::quoted(target) +
                  ",\"candidates\":" + detail::quoted(candidates),
              answer))
      return false;
    const detail::Json *ranking = answer.get("ranking");
    if (!ranking) return fail("the answer has no ranking");
    out.clear();
    for (const detail::Json &json : ranking->items)
      out.push_back({static_cast<std::size_t>(json.real("position")), detail::estimate(json)});
    return true;
  }

  /// Why the last call returned false.
  const std::string &error() const { return error_; }

private:
  int socket_ = -1;
  std::uint32_t last_id_ = 0;
  std::string received_, error_;

  bool fail(const std::string &why) {
    error_ = why;
    return false;
  }
  /// An exchange that broke off leaves the stream in the middle of something: start afresh next time.
  bool broken(const std::string &why) {
    close();
    return fail(why);
  }

  bool call(const std::string &fields, detail::Json &answer) {
    if (socket_ < 0) return fail("not connected");
    const std::uint32_t id = ++last_id_;
    const std::string request = "{\"id\":" + std::to_string(id) + fields + "}\n";
    for (std::size_t sent = 0; sent < request.size();) {
      const ssize_t n = ::send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return broken(std::string("sending failed: ") + std::strerror(errno));
      sent += static_cast<std::size_t>(n);
    }
    std::size_t end;
    for (std::size_t searched = 0; (end = received_.find('\n', searched)) == std::string::npos;) {
      searched = received_.size();
      char chunk[1 << 14];
      const ssize_t n = ::recv(socket_, chunk, sizeof chunk, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) return broken("the server has closed the connection");
      if (n < 0) return broken(std::string("no answer: ") + std::strerror(errno));
      received_.append(chunk, static_cast<std::size_t>(n));
    }
    const std::string line = received_.substr(0, end);
    received_.erase(0, end + 1);
    if (!detail::JsonReader(line).read(answer) || answer.kind != detail::Json::Object)
      return broken("the answer is not a JSON object");
    const detail::Json *error = answer.get("error");
    if (error && error->kind == detail::Json::Object) return fail(error->text("message"));
    if (answer.real("id") != id) return broken("the answer is to another request");
    return true;
  }
};

} // namespace irgauge

#endif
