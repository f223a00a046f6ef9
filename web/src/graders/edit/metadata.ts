import { $api } from "../../api/client";
import { useAddress } from "../../parts/address";

const ROW_FIELDS = ["id", "answer", "messages", "completion", "question", "expected", "metadata"];

/** Names in the metadata of the first row of the dataset that samples are taken from. */
export function useMetadataKeys(project: string): readonly string[] {
  const [{ dataset }] = useAddress({ dataset: "" });
  const rows = $api.useQuery(
    "get",
    "/api/v1/projects/{project}/datasets/{key}/rows",
    { params: { path: { project, key: dataset }, query: { limit: 1, whole: true } } },
    { enabled: dataset !== "", staleTime: Number.POSITIVE_INFINITY },
  );
  const data = rows.data?.items[0]?.data ?? {};
  const metadata = typeof data.metadata === "object" && data.metadata ? data.metadata : {};
  const own = Object.keys(data).filter((field) => !ROW_FIELDS.includes(field));
  return [...new Set([...Object.keys(metadata), ...own])].filter((name) => name !== "expected");
}
