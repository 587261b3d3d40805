// Moves the tool up and down by 2 cm for 4 s, through `simbridge teleop network`. POSIX and the standard library only.
//
//     g++ -std=c++17 -O2 -o client docs/teleop/client.cpp
//     ./client                     with an IPv4 address, a port and a token if it has them

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

using Clock = std::chrono::steady_clock;
constexpr double kSeconds = 4.0, kTimeout = 60.0, kPi = 3.14159265358979323846;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// The number after "name": in a reply, or -1. A real client has a JSON library.
double number_of(const std::string& reply, const std::string& name) {
  const auto at = reply.find("\"" + name + "\":");
  return at == std::string::npos ? -1.0 : std::atof(reply.c_str() + at + name.size() + 3);
}

class Client {
 public:
  Client(const char* host, int port, std::string token) : token_(std::move(token)) {
    socket_ = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
        ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      std::perror(host);
      std::exit(2);
    }
    // Increases over restarts, too.
    seq_ = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
               .count();
  }
  ~Client() { ::close(socket_); }

  // Sends a message, with more fields such as ,"engagement":1 at its end; returns its sequence number.
  std::int64_t send(const std::string& type, const std::string& more = "") {
    const std::string text = "{\"type\":\"" + type + "\",\"client\":\"cpp\",\"seq\":" + std::to_string(++seq_) +
                             ",\"token\":\"" + token_ + "\"" + more + "}";
    ::send(socket_, text.data(), text.size(), 0);
    return seq_;
  }

  // The next reply within a time in s; empty if none came.
  std::string receive(double seconds) {
    timeval limit{static_cast<time_t>(seconds), static_cast<suseconds_t>(1e6 * (seconds - std::floor(seconds)))};
    if (limit.tv_sec == 0 && limit.tv_usec == 0) limit.tv_usec = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char data[4096];
    const auto count = ::recv(socket_, data, sizeof data, 0);
    return count > 0 ? std::string(data, static_cast<std::size_t>(count)) : std::string();
  }

 private:
  int socket_;
  std::string token_;
  std::int64_t seq_;
};

int main(int argc, char** argv) {
  Client client(argc > 1 ? argv[1] : "127.0.0.1", argc > 2 ? std::atoi(argv[2]) : 8321, argc > 3 ? argv[3] : "");
  std::string reply;
  // On a real arm the operator is asked first.
  for (const auto begin = Clock::now(); reply.empty() && since(begin) < kTimeout;) {
    client.send("engage");
    reply = client.receive(0.5);
  }
  const auto engagement = static_cast<std::int64_t>(number_of(reply, "engagement"));
  if (reply.find("\"ok\":true") == std::string::npos || engagement <= 0) {
    std::fprintf(stderr, "%s\n", reply.empty() ? "No reply." : reply.c_str());
    return 1;
  }
  const double rate = 4.0 * kPi / kSeconds;
  for (const auto begin = Clock::now(); since(begin) < kSeconds;) {
    char more[160];
    std::snprintf(more, sizeof more, ",\"engagement\":%lld,\"values\":[0,0,%.6f,0,0,0]",
                  static_cast<long long>(engagement), 0.01 * rate * std::sin(rate * since(begin)));
    client.send("twist", more);
    reply = client.receive(0.001);
    if (reply.find("\"ok\":false") != std::string::npos) {
      std::fprintf(stderr, "%s\n", reply.c_str());
      client.send("disengage");
      return 1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  client.send("disengage");
  return 0;
}
