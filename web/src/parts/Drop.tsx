import { useState } from "react";
import "./parts.css";

/** Where files are dropped, or chosen. */
export function Drop({ words, label, accept, multiple = false, take }: DropProps) {
  const [isOver, setOver] = useState(false);
  return (
    <label
      className={isOver ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take([...event.dataTransfer.files]);
      }}
    >
      <span>{words}</span>
      <input
        type="file"
        aria-label={label}
        accept={accept}
        multiple={multiple}
        onChange={(event) => take([...(event.target.files ?? [])])}
      />
    </label>
  );
}

interface DropProps {
  words: string;
  label: string;
  /** Endings of files. */
  accept: string;
  multiple?: boolean;
  take: (files: readonly File[]) => void;
}
