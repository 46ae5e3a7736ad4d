import { describe, expect, it } from "vitest";
import { nearTests } from "./near-tests.ts";

describe("near tests", () => {
  it("are asked from the file's own outwards, each once, and end with the area", () => {
    const further = "controller/grpc/server.test.ts";
    const own = "controller/areas/hosts/session/entry-room.test.ts";
    const [first, inFolder, outside, inArea, ...rest] = nearTests("controller/areas/hosts/session/entry-room.ts", [
      further,
      own,
    ]);
    expect(first).toEqual([own]);
    expect(inFolder).toContain("controller/areas/hosts/session/sessions.test.ts");
    expect(inFolder).not.toContain(own);
    expect(outside).toContain("controller/areas/hosts/routes.test.ts");
    expect(inArea).toContain("controller/areas/hosts/commands/wait.test.ts");
    expect(inArea).not.toContain("controller/areas/hosts/routes.test.ts");
    expect(rest).toEqual([[further]]);
  });

  it("are also those elsewhere that use the area, or the file", () => {
    const elsewhere = (file: string) =>
      nearTests(file, [])
        .flat()
        .filter((test) => test.startsWith("test/"));
    expect(elsewhere("controller/areas/query/run/pipeline.ts")).toContain("test/mql/scripts.test.ts");
    expect(elsewhere("agent/outbox/outbox.ts")).toContain("test/durability/outbox.test.ts");
    expect(elsewhere("agent/commands/exec.ts")).not.toContain("test/durability/outbox.test.ts");
  });

  it("of a file without its own are those beside it first", () => {
    expect(nearTests("controller/areas/hosts/session/frames.ts", [])[0]).toContain(
      "controller/areas/hosts/session/entry-room.test.ts",
    );
  });
});
