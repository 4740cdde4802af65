// Typical code of tests with `edgelatch/testing`, and mistakes that must not compile.

import { connect } from "edgelatch";
import { createTestGateway } from "edgelatch/testing";
import type { Held, HeldKind, HoldOptions, OtherHold, TestGateway, TestGatewayOptions } from "edgelatch/testing";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function is<_Proof extends true>(): void {}

export async function gateway(): Promise<void> {
  const options: TestGatewayOptions = { now: () => Date.now() };
  const gateway: TestGateway = createTestGateway(options);
  const locks = connect({ url: gateway.url, token: gateway.token, fetch: gateway.fetch });
  await locks.lock("a").run(() => gateway.loseReplies());
  gateway.refuse(2);
  gateway.delayReplies(1_000);
  gateway.setDown(true);
  const hold: HoldOptions = { kind: "semaphore", leaseMs: 1_000, permits: 2 };
  const other: OtherHold = gateway.hold("b", hold);
  is<Same<typeof other.token, number>>();
  const existed: boolean = other.release() && gateway.expire("b");
  const [held]: Held[] = gateway.held();
  if (held && existed) is<Same<typeof held.kind, HeldKind>>();
  if (held) is<Same<typeof held.remainingMs, number | null>>();
}

export function mistakes(gateway: TestGateway): void {
  // @ts-expect-error a group is held by a second client
  gateway.hold("a", { kind: "groupLock" });
  // @ts-expect-error the state is an argument
  gateway.setDown();
  // @ts-expect-error the clock returns a number
  createTestGateway({ now: () => new Date() });
  // @ts-expect-error a hold cannot change
  gateway.hold("a").token = 1;
  // @ts-expect-error the gateway's address is its own
  gateway.url = "https://other.test";
}
