# Other programs may be at work on the machine.
ExUnit.start(assert_receive_timeout: 5_000)
