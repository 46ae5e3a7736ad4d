import type { InjectOptions, LightMyRequestResponse } from "fastify";
import { fileRoutes } from "../../../controller/areas/files/routes.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import { openTestHttp, type TestHttp } from "../http/http-app.ts";
import { fileController, type FileController, type FileControllerOptions } from "./files.ts";

export interface FileHttp extends AsyncDisposable {
  readonly controller: FileController;
  /** A call of the administrator. */
  readonly call: (request: Parameters<TestHttp["call"]>[1]) => ReturnType<TestHttp["call"]>;
  /** Like `call`, with the answer as it is sent. */
  readonly send: (request: InjectOptions & { readonly url: string }) => Promise<LightMyRequestResponse>;
}

/** The endpoints of files, with the search in their contents. */
export async function openFileHttp(options: FileControllerOptions = {}): Promise<FileHttp> {
  const opened: { http?: TestHttp } = {};
  const http = (): TestHttp => {
    if (!opened.http) throw new Error("The stores are not open yet.");
    return opened.http;
  };
  const stores: Stores = { system: () => http().engine.system(), tenant: (name) => http().engine.tenant(name) };
  const everyone = (tenant: string) => http().groups.rightsOfEveryone(tenant);
  const controller = fileController(stores, { everyone, ...options });
  opened.http = await openTestHttp({ endpoints: fileRoutes(controller.files, controller.search) });
  const admin = await opened.http.signIn("admin");
  return {
    controller,
    call: (request) => http().call(admin, request),
    send: ({ url, ...request }) =>
      http().app.inject({ ...request, url: `${url}${url.includes("?") ? "&" : "?"}sessionid=${admin}` }),
    async [Symbol.asyncDispose]() {
      await controller[Symbol.asyncDispose]();
      await http()[Symbol.asyncDispose]();
    },
  };
}
