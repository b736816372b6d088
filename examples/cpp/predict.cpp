// Sends an .mlir file to `irgauge serve --socket PATH` and prints the predictions, one line each.
//
//   g++ -std=c++17 -O2 examples/cpp/predict.cpp -o predict
//   irgauge serve --socket /tmp/irgauge.sock &
//   ./predict /tmp/irgauge.sock examples/matmul.mlir [TARGET...]
#include "irgauge_client.hpp"

#include <fstream>
#include <iostream>
#include <sstream>

int main(int argc, char **argv) {
  if (argc < 3) {
    std::cerr << "usage: " << argv[0] << " SOCKET FILE.mlir [TARGET...]\n";
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    std::cerr << argv[2] << ": cannot be read\n";
    return 1;
  }
  irgauge::Client client;
  std::vector<irgauge::Function> functions;
  if (!client.connect(argv[1]) || !client.predict(text.str(), functions, {argv + 3, argv + argc})) {
    std::cerr << argv[2] << ": " << client.error() << "\n";
    return 1;
  }
  std::cout.precision(17);
  for (const irgauge::Function &function : functions) {
    for (const std::string &warning : function.warnings) std::cerr << function.name << ": " << warning << "\n";
    for (const irgauge::Estimate &e : function.estimates)
      std::cout << function.name << " " << e.device << "/" << e.target << " " << e.value << " [" << e.low << ", "
                << e.high << "] " << e.unit << " " << e.status << "\n";
  }
}
