import { describe } from "vitest";
import { commandsContract, concurrentCommandsContract } from "./target/commands.ts";
import { depotsContract, refusedDepotsContract, remotePathsContract, removedDepotsContract } from "./target/depots.ts";
import { endingsContract } from "./target/endings.ts";
import { targetSubject, type TargetUnderTest } from "./target/subject.ts";

/** Contract of both transports. The target host is this machine, so the tests can check effects on it. */
export function targetContract(name: string, open: () => Promise<TargetUnderTest>): void {
  describe(`target: ${name}`, () => {
    const subject = targetSubject(open);
    commandsContract(subject);
    endingsContract(subject);
    concurrentCommandsContract(subject);
    depotsContract(subject);
    removedDepotsContract(subject);
    remotePathsContract(subject);
    refusedDepotsContract(subject);
  });
}
