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

  it("of a file without its own are those beside it first", () => {
    expect(nearTests("controller/areas/hosts/session/frames.ts", [])[0]).toContain(
      "controller/areas/hosts/session/entry-room.test.ts",
    );
  });
});
