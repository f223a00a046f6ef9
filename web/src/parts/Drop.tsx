import { useState } from "react";

/** Where files are dropped, or chosen. */
export function Drop({ words, label, accept, multiple = false, take }: DropProps) {
  const [isOver, setOver] = useState(false);
  return (
    <label
      className={`grid justify-items-center gap-3 rounded-lg border border-dashed p-6 text-center text-soft ${
        isOver ? "border-accent bg-accent-soft" : "border-edge bg-sunk"
      }`}
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
        className="max-w-full text-sm file:mr-3 file:min-h-8 file:rounded-md file:border-0 file:bg-fill file:px-3 file:text-ink
          pointer-coarse:file:min-h-10"
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
