// One thread that runs tasks in the order they came.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace megamoe::frontend {

class SerialWorker {
  public:
    SerialWorker();
    ~SerialWorker();  // finishes the task under way, drops the others
    SerialWorker(const SerialWorker&) = delete;
    SerialWorker& operator=(const SerialWorker&) = delete;

    // Thread any
    void post(std::function<void()> task);

  private:
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace megamoe::frontend
