#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A notification service of asyncio: what one client says, all listeners get.

    notify.py serve [NAME]         until Ctrl-C
    notify.py listen [NAME]        prints what clients say
    notify.py say TEXT [NAME]
    notify.py                      shows all three in one process
"""

import asyncio
import os
import sys

import urma


async def serve(device, name):
    jetty = device.jetty(receives=64, receiver_timeout=1)
    device.publish(name, jetty=jetty)
    listeners: dict[tuple, urma.RemoteJetty] = {}

    async def tell(sender, text):
        try:
            await jetty.send(text, listeners[sender])
        except urma.Error as error:  # it has ended, or takes nothing
            print(f"a listener is dropped: {error.status}", flush=True)
            listeners.pop(sender, None)

    async for arrival in jetty.arrivals():
        if arrival.data.startswith(b"urma1 "):
            # A message does not say how to answer, so a listener sends its descriptor.
            listeners[arrival.sender] = device.import_(arrival.data.decode()).jetty
        else:
            await asyncio.gather(*(tell(each, arrival.data) for each in list(listeners)))


async def listen(device, name, most=None):
    service = device.import_("urma://localhost/" + name, timeout=10).jetty
    jetty = device.jetty(receives=64)
    await jetty.send(jetty.descriptor.encode(), service)
    count = 0
    async for arrival in jetty.arrivals():
        print(arrival.data.decode(), flush=True)
        count += 1
        if count == most:
            return


async def say(device, name, text):
    service = device.import_("urma://localhost/" + name, timeout=10).jetty
    await device.jetty().send(text.encode(), service)


async def show():
    name = f"notify-{os.getpid()}"
    with urma.open() as one, urma.open() as two:
        service = asyncio.ensure_future(serve(one, name))
        await asyncio.sleep(0)
        listener = asyncio.ensure_future(listen(two, name, 2))
        await asyncio.sleep(0.2)
        for text in ("hello", "listeners"):
            await say(two, name, text)
        await asyncio.wait_for(listener, 10)
        service.cancel()


def main():
    words = sys.argv[1:]
    role = words.pop(0) if words else "show"
    text = words.pop(0) if role == "say" and words else ""
    name = words.pop(0) if words else "notify"
    if role == "show":
        asyncio.run(show())
        return
    with urma.open() as device:
        if role == "serve":
            asyncio.run(serve(device, name))
        elif role == "listen":
            asyncio.run(listen(device, name))
        elif role == "say" and text:
            asyncio.run(say(device, name, text))
        else:
            sys.exit("usage: notify.py [serve [NAME] | listen [NAME] | say TEXT [NAME]]")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
    except urma.Error as error:
        sys.exit(f"notify.py: {error}")
