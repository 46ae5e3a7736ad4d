import type { Area } from "../../area.ts";
import { schemaHostObject } from "./host-objects.ts";
import { schemaRoutes } from "./routes.ts";
import type { SchemaService } from "./service.ts";

export function schemaArea(schema: SchemaService): Area {
  return { name: "schema", endpoints: schemaRoutes(schema), hostObjects: [schemaHostObject(schema)] };
}
